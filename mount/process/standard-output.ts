/** Standard output that cannot be written: who reads a file that is not whole must learn of it by the exit code. */

const FAILED = 1;

export function failWithoutStandardOutput(program: string): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // `mooring status | head` is no error.
    if (error.code === 'EPIPE') process.exit(0);
    process.stderr.write(`${program}: standard output: ${error.code ?? error.message}\n`);
    process.exit(FAILED);
  });
}
