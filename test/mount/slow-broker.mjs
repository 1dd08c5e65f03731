/**
 * A path broker that only pretends, for tests of the pool. `/hang` never answers, `/slow` after 300 ms, `/die` is
 * death; everything else is answered at once. The answer is the pid of who gave it. Plain JavaScript: it starts fast.
 */
const forever = new Int32Array(new SharedArrayBuffer(4));

process.on('disconnect', () => process.exit(0));
process.on('message', ({ id, call: { args } }) => {
  if (args.path === '/hang') Atomics.wait(forever, 0, 0);
  if (args.path === '/slow') Atomics.wait(forever, 0, 0, 300);
  if (args.path === '/die') process.kill(process.pid, 'SIGKILL');
  process.send({ kind: 'settled', id, result: { ok: true, value: process.pid } });
});
process.send({ kind: 'ready' });
