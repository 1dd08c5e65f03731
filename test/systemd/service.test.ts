/** The unit files under a real systemd: a container of this machine. Each test goes on where the last one ended. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { bootNestedSystemd, type NestedSystemd, nestedSystemdSkip } from './nested-systemd.ts';

const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));
const WEB = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'default', uid: '11111111-1111-4111-8111-111111111111' },
  spec: {
    containers: [{ name: 'c', image: 'i', volumeMounts: [{ name: 'mem', mountPath: '/m' }] }],
    volumes: [{ name: 'mem', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } }],
  },
});
const SET_UP = `install -D -m 0755 ${REPOSITORY}dist/mooring.mjs $R/usr/local/bin/mooring
install -D -m 0755 ${REPOSITORY}dist/mooring-loopfile.mjs $R/usr/local/bin/mooring-loopfile
install -m 0644 ${REPOSITORY}systemd/*.service $R/etc/systemd/system/
mkdir -p $R/etc/mooring/manifests
cat > $R/etc/mooring/manifests/web.json <<'JSON'
${WEB}
JSON`;
const DROP_IN = '/run/systemd/system/mooring.service.d/test.conf';

const skip = nestedSystemdSkip();
let nested: NestedSystemd | undefined;

before(async () => {
  if (skip !== undefined) return;
  execFileSync(process.execPath, ['--import', import.meta.resolve('tsx'), 'build.ts'], { cwd: REPOSITORY });
  nested = await bootNestedSystemd(SET_UP);
});

after(() => nested?.end());

function node(t: TestContext): NestedSystemd | undefined {
  if (skip === undefined) return nested;
  t.diagnostic(`SKIPPED: ${skip}`);
  t.skip(skip);
  return undefined;
}

const show = (on: NestedSystemd, property: string): string => {
  return on.run(`systemctl show -P ${property} mooring`).out.trim();
};

function configure(on: NestedSystemd, lines: string): void {
  on.run(
    `mkdir -p ${DROP_IN.slice(0, DROP_IN.lastIndexOf('/'))}; printf '[Service]\\n${lines}\\n' > ${DROP_IN}`,
  );
  on.run('systemctl daemon-reload');
}

/** Long enough for an agent that gets a tenth of a processor. */
const WATCHDOG_SECONDS = 10;
const MICROSECONDS = 1_000_000;

/** Settles when the last word to the watchdog is so much younger than the one it had before. */
async function fedFor(on: NestedSystemd, seconds: number): Promise<void> {
  const fed = (): number => Number(show(on, 'WatchdogTimestampMonotonic'));
  const first = fed();
  for (let waited = 0; fed() - first < seconds * MICROSECONDS; waited += 1) {
    assert.ok(waited < FED_LOOKS_MAX, 'the watchdog is not fed');
    await new Promise((resolve) => setTimeout(resolve, FED_LOOK_MS));
  }
}

const FED_LOOK_MS = 250;
const FED_LOOKS_MAX = 1_200;

test('the agent becomes ready, tells its status, and pid 1 sees its mounts', async (t) => {
  const on = node(t);
  if (on === undefined) return;
  assert.deepEqual(on.run('systemctl start mooring'), { code: 0, out: '' });
  await on.until(
    'systemctl show -P StatusText mooring',
    /^1 volumes wanted, 1 mounted, 0 operations running$/m,
  );
  assert.match(on.run('mooring status').out, /default\/web +mem +empty-dir +● mounted/);
  assert.equal(on.mounts('kubernetes.io~empty-dir/mem').length, 1);
});

test('a restart leaves every mount as it is', async (t) => {
  const on = node(t);
  if (on === undefined) return;
  const mounts = on.mounts('/var/lib/mooring/');
  const process = show(on, 'MainPID');
  on.run('systemctl restart mooring');
  await on.until('mooring status', /1 of 1 pods ready/);
  assert.notEqual(show(on, 'MainPID'), process);
  assert.deepEqual(on.mounts('/var/lib/mooring/'), mounts);
});

test('who is started after the agent has ended at a shutdown before network and disks go', async (t) => {
  const on = node(t);
  if (on === undefined) return;
  const unit = (name: string, order: string, stop: string): void => {
    const service = [
      '[Service]',
      'Type=oneshot',
      'RemainAfterExit=yes',
      'ExecStart=/bin/true',
      `ExecStop=${stop}`,
    ];
    const lines = ['[Unit]', ...order.split(' '), ...service].join('\\n');
    on.run(`printf '${lines}\\n' > /run/systemd/system/${name}.service`);
  };
  unit('lines', 'Before=network.target Wants=network.target', '/bin/true');
  unit('sessions', 'Before=remote-fs-pre.target Wants=remote-fs-pre.target', '/bin/true');
  // It ends its work when the test says so.
  unit('database', 'After=mooring.service', '/bin/sh -c "read line < /run/work-is-done"');
  on.run('mkfifo /run/work-is-done; systemctl daemon-reload');
  assert.deepEqual(on.run('systemctl start lines sessions mooring database'), { code: 0, out: '' });
  // As shutdown.target: all in one transaction. Several units of one `systemctl stop` are several.
  const all =
    'lines.service sessions.service mooring.service database.service network.target remote-fs-pre.target';
  on.run(`printf '[Unit]\\nConflicts=${all}\\n' > /run/systemd/system/over.target; systemctl daemon-reload`);
  on.run('systemctl start --no-block over.target');
  await on.until('systemctl is-active database', /^deactivating$/m);
  const jobs = on.run('systemctl list-jobs --no-legend').out;
  for (const name of ['lines', 'sessions', 'mooring'])
    assert.match(jobs, new RegExp(`${name}\\.service +stop +waiting`), jobs);
  on.run('echo > /run/work-is-done');
  await on.until('systemctl is-active lines sessions mooring', /^inactive\ninactive\ninactive$/m);
  assert.deepEqual(on.run('systemctl start mooring'), { code: 0, out: '' });
  await on.until('mooring status', /1 of 1 pods ready/);
});

test('an agent that is killed is back soon, and its mounts never went away', async (t) => {
  const on = node(t);
  if (on === undefined) return;
  const mounts = on.mounts('/var/lib/mooring/');
  on.run('systemctl kill -s KILL --kill-whom=main mooring');
  assert.deepEqual(on.mounts('/var/lib/mooring/'), mounts);
  await on.until('systemctl show -P NRestarts mooring', /^1$/m);
  await on.until('mooring status', /1 of 1 pods ready/);
  assert.deepEqual(on.mounts('/var/lib/mooring/'), mounts);
});

test('an agent that hangs is ended by the watchdog, a healthy one is not', async (t) => {
  const on = node(t);
  if (on === undefined) return;
  configure(on, `WatchdogSec=${WATCHDOG_SECONDS}`);
  on.run('systemctl restart mooring');
  const process = show(on, 'MainPID');
  await fedFor(on, WATCHDOG_SECONDS + 1);
  assert.equal(show(on, 'MainPID'), process);
  const restarts = show(on, 'NRestarts');
  on.run('systemctl kill -s STOP --kill-whom=main mooring');
  await on.until('systemctl show -P NRestarts mooring', new RegExp(`^${Number(restarts) + 1}$`, 'm'));
  await on.until('mooring status', /1 of 1 pods ready/);
});

test('an agent whose configuration turns the watchdog off is not ended by it', async (t) => {
  const on = node(t);
  if (on === undefined) return;
  configure(on, `WatchdogSec=${WATCHDOG_SECONDS}`);
  on.run("printf 'watchdog: false\\n' > /etc/mooring/config.yaml; systemctl restart mooring");
  assert.equal(show(on, 'ActiveState'), 'active');
  const waits = show(on, 'WatchdogUSec');
  on.run('rm /etc/mooring/config.yaml');
  configure(on, '');
  on.run('systemctl restart mooring');
  assert.equal(waits, '0', 'nobody tells it anything, so it would end the agent');
  assert.equal(show(on, 'WatchdogUSec'), '30s');
});

test('systemd need not kill an agent that stops with every helper hung, and nothing is unmounted', async (t) => {
  const on = node(t);
  if (on === undefined) return;
  const mounts = on.mounts('/var/lib/mooring/');
  await on.until('systemctl show -P ActiveState mooring', /^active$/m);
  // The shipped TimeoutStopSec=.
  configure(on, '');
  on.run(`pkill -STOP -P ${show(on, 'MainPID')}`);
  on.run('systemctl stop mooring');
  assert.deepEqual([show(on, 'ActiveState'), show(on, 'Result')], ['inactive', 'success']);
  assert.deepEqual(on.mounts('/var/lib/mooring/'), mounts);
  on.run("pkill -KILL 'mooring-(path|tool)'");
});

test('in a mount namespace of its own the agent refuses to start, and is not started again', async (t) => {
  const on = node(t);
  if (on === undefined) return;
  configure(on, 'PrivateTmp=yes');
  on.run('systemctl start mooring');
  assert.deepEqual([show(on, 'ActiveState'), show(on, 'ExecMainStatus')], ['failed', '78']);
  configure(on, '');
  on.run('systemctl reset-failed mooring; systemctl start mooring');
  await on.until('mooring status', /1 of 1 pods ready/);
});

test('the bundled driver registers, its volume is mounted for a pod, and comes down with it', async (t) => {
  const on = node(t);
  if (on === undefined) return;
  on.run('systemctl start mooring-loopfile');
  await on.until('mooring status', /loopfile\.mooring\.dev .* registered/);
  const pool = '/var/lib/mooring-loopfile';
  on.run(
    `mooring-loopfile create --pool ${pool} --name data --size 64Mi --yaml > /etc/mooring/manifests/data.yaml`,
  );
  const pod = WEB.replaceAll('web', 'db').replaceAll('1111', '2222').replaceAll('"mem"', '"d"');
  const claim = '"persistentVolumeClaim":{"claimName":"data"}';
  const manifest = pod.replace('"emptyDir":{"medium":"Memory","sizeLimit":"1Mi"}', claim);
  on.run(`printf '%s' '${manifest}' > /etc/mooring/manifests/db.json`);
  await on.until('mooring status', /default\/db +data +loopfile\.mooring\.dev +● mounted/);
  assert.match(on.mounts('kubernetes.io~csi/data/mount').join(), / - ext4 \/dev\/loop/);
  on.run('rm /etc/mooring/manifests/*.json');
  await on.until('mooring status', /0 of 0 pods ready[^●]*No pods and no volumes/);
  assert.deepEqual(on.mounts('/var/lib/mooring/'), []);
  assert.doesNotMatch(on.run('losetup -l -n -O BACK-FILE').out, /mooring-loopfile/);
});
