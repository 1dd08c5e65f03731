/** However many volumes and devices hang, others are mounted and the service manager is told. */
import { readFileSync, writeFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type AbsolutePath, below, type Host } from '../../../mount/host.ts';
import { createNotifier } from '../../../mount/process/notify.ts';
import { until } from '../../until.ts';
import { value } from '../../value.ts';
import { realHost, scratchDirectory } from '../scratch.ts';

const BROKER = fileURLToPath(new URL('../hanging-broker.mjs', import.meta.url));
const HUNG = Array.from({ length: 8 }, (_, n) => `/hung/${n}` as AbsolutePath);
const [DEVICE, TARGET] = ['/fine/device', '/fine/target'] as unknown as [AbsolutePath, AbsolutePath];
/** A busy machine starts a broker within this. */
const SOON_MS = 10_000;
const NEVER_MS = 600_000;
const isWalked = true;

/** A host whose brokers never answer about what hangs, and what they have begun. */
async function hostOverHung(t: TestContext) {
  const log = below(scratchDirectory(t), 'begun');
  writeFileSync(log, '');
  process.env['NOTIFY_SOCKET'] = '/fine/notify';
  t.after(() => {
    delete process.env['NOTIFY_SOCKET'];
  });
  const host = await realHost(t, {
    brokerCommand: [process.execPath, BROKER, log],
    deadlinesMs: { path: NEVER_MS, mount: SOON_MS, unmount: SOON_MS, notify: SOON_MS },
  });
  const begun = () => readFileSync(log, 'utf8').split('\n');
  return { host, begun };
}

const HANGING: readonly [words: string, tool: string, begin: (host: Host, hung: AbsolutePath) => unknown][] =
  [
    ['checks', 'e2fsck', (host, hung) => host.checkFileSystem(hung, 'ext4')],
    ['looks at devices', 'blkid', (host, hung) => host.readDeviceContent(hung)],
    [
      'mounts of devices',
      'mount',
      (host, hung) => host.mount({ fsType: 'ext4', source: hung, target: TARGET, options: [], isWalked }),
    ],
    ['umounts', 'umount', (host, hung) => host.unmount(hung, { isWalked })],
    [
      'mounts of servers',
      'mount',
      (host, hung) =>
        host.mount({ fsType: 'nfs', source: `s${hung.at(-1)}:/`, target: hung, options: [], isWalked }),
    ],
  ];
for (const [words, tool, begin] of HANGING)
  test(`INV-28: eight ${words} that hang hold up no other volume, and no word to the service manager`, async (t) => {
    const { host, begun } = await hostOverHung(t);
    for (const hung of HUNG) void begin(host, hung);
    await until('all of them have begun', () => begun().filter((one) => one.startsWith(tool)).length === 8);
    value(await host.notify('WATCHDOG=1'));
    const memory = { fsType: 'tmpfs', source: 'memory', target: TARGET, options: [], isWalked } as const;
    value(await host.mount(memory));
    value(await host.unmount(TARGET, { isWalked, isMemory: true }));
    value(await host.readDeviceContent(DEVICE));
    value(await host.mount({ ...memory, fsType: 'ext4', source: DEVICE }));
    value(await host.unmount(TARGET, { isWalked }));
    value(await host.mount({ ...memory, fsType: 'nfs', source: 'server:/' }));
    value(await host.unmount(TARGET, { isWalked, isRemote: true }));
  });

test('the watchdog is fed while as many looks at volumes hang as there are brokers', async (t) => {
  const { host, begun } = await hostOverHung(t);
  for (const hung of HUNG) void host.lookUpMount(hung);
  await until('all of them have begun', () => begun().filter((one) => one.startsWith('lookUp')).length === 8);
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const notifier = createNotifier({ host, log, watchdogMs: 300, turned: () => true });
  await notifier.ready('up');
  const pings = () => begun().filter((one) => one.endsWith('WATCHDOG=1')).length;
  await until('pings have come', () => pings() > 1, { waitMsMax: SOON_MS });
  await notifier.stopping();
});
