/** Standard output that cannot be written: who reads a file that is not whole must learn of it by the exit code. */

const FAILED = 1;

/**
 * That nobody reads any more, as of `mooring status | head`, is no failure, and no success either: the program goes on
 * to its end, and its exit code says what it has come to. So it is with complaints that nobody reads.
 */
export function failWithoutStandardOutput(program: string): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return;
    process.stderr.write(`${program}: standard output: ${error.code ?? error.message}\n`);
    process.exit(FAILED);
  });
  process.stderr.on('error', () => {});
}

/** Called by what has no end of its own: nobody reads it any more, so this is the end. */
export function endWithoutReader(): void {
  process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') process.exit(0);
  });
}
