/**
 * A broker that only pretends, for tests of the host: a tool that has to do with `/hung`, and the look at its mount,
 * are never answered, everything else at once. What it begins is a line of the file that is named before its kind.
 * Plain JavaScript: it starts fast.
 */
import { appendFileSync } from 'node:fs';

const [log] = process.argv.slice(-2);
const forever = new Int32Array(new SharedArrayBuffer(4));
const DONE = { exitCode: 0, signal: undefined, deadlinePassed: false, stdout: '', stderr: '' };
const ANSWERS = { isDeviceChangeable: true, inspect: { kind: 'directory' } };

process.on('disconnect', () => process.exit(0));
process.on('message', ({ id, kind, request, call }) => {
  const words = kind === 'tool' ? [request.tool, ...request.argv] : [call.kind, call.args.path];
  appendFileSync(log, `${words.join(' ')}\n`);
  const hangs = words.some((word) => word?.startsWith('/hung'));
  if (kind === 'tool' && hangs) return;
  if (hangs && call.kind === 'lookUpMount') Atomics.wait(forever, 0, 0);
  process.send({
    kind: 'settled',
    id,
    result: { ok: true, value: kind === 'tool' ? DONE : ANSWERS[call.kind] },
  });
});
process.send({ kind: 'ready' });
