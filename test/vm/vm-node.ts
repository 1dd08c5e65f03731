/** A node in a virtual machine: the product as it is built, installed as the README says, under the shipped units. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { StatusDocument } from '../../agent/status/status-document.ts';
import { type VolumeFacts, volumeAndClaim } from '../interop/manifests.ts';
import { type MachineImage, machineImage, type MachineKind, PLAIN_MACHINE } from './machine-image.ts';
import { startVirtualMachine, type VirtualMachine } from './virtual-machine.ts';

export const DRIVER = 'loopfile.mooring.dev';
export const POOL = '/var/lib/mooring-loopfile';
export const ROOT = '/var/lib/mooring';

/** The source of a pod's volume. */
export const claimed = (name: string): string => `persistentVolumeClaim: { claimName: ${name} }`;

/** Where a pod finds a file system of the driver. */
export const targetOf = (uid: string, volume: string): string =>
  `${ROOT}/pods/${uid}/volumes/kubernetes.io~csi/${volume}/mount`;

export interface VmNode extends VirtualMachine {
  /** Written through. */
  put(name: string, manifest: string): Promise<void>;
  remove(...names: readonly string[]): Promise<void>;
  /** The PersistentVolume and claim of a new volume of the bundled driver. */
  create(name: string, size: string, facts?: Pick<VolumeFacts, 'mode' | 'fsType'>): Promise<string>;
  status(): Promise<StatusDocument>;
  /** The first status for which it holds. */
  untilStatus(
    what: string,
    holds: (status: StatusDocument) => boolean,
    waitMs?: number,
  ): Promise<StatusDocument>;
  /** So many pods, all ready; nothing under way, nothing in doubt, nothing in the way. */
  untilReady(pods: number): Promise<StatusDocument>;
  /** No pod, no volume; and nothing is left in the mount table, of loop devices and of pods' directories. */
  untilEmpty(): Promise<void>;
  /** Lines of pid 1's mountinfo for what is mounted below the state root. */
  mounts(): Promise<readonly string[]>;
}

const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));
const UNPACKED = '/srv/mooring';
/** Longer than a call that was given up may still take effect: `late_effect_ms` after its deadline. */
const STATUS_MS_MAX = 900_000;
/**
 * The status as soon as it is another one than that which was seen, asked over the socket. The command would start
 * Node.js each time, under emulation for seconds, beside the agent that is waited for.
 */
const ASK = `perl -MIO::Socket::UNIX -e '
$agent = IO::Socket::UNIX->new(Peer => "/run/mooring/agent.sock") or exit 1;
print $agent "GET /v1/status$ARGV[0] HTTP/1.0\\r\\n\\r\\n";
local $/; $answer = <$agent>;
$answer =~ s{^HTTP/1.. 200 .*?\\r\\n\\r\\n}{}s or exit 1;
print $answer'`;
const NO_AGENT_SECONDS = '0.2';
const CHANGE_MS_MAX = 10_000;

/** A command of the guest; where no agent answers it waits a moment and fails. */
function nextStatus(seen: StatusDocument | undefined): string {
  const after = seen === undefined ? '' : `?after=${seen.revision}&waitMs=${CHANGE_MS_MAX}`;
  return `${ASK} '${after}' || { sleep ${NO_AGENT_SECONDS}; false; }`;
}

/**
 * The commands of the README, and no more than patience beside them: emulated on a busy machine a start takes minutes,
 * and a turn of the agent longer than the unit's watchdog waits. Written through, for a power cut later.
 */
const INSTALL = `set -e; cd ${UNPACKED}
mkdir -p /etc/systemd/system/mooring.service.d
printf '[Service]\\nTimeoutStartSec=900\\nWatchdogSec=600\\n' > /etc/systemd/system/mooring.service.d/patience.conf
install -D -m 0755 dist/mooring.mjs /usr/local/bin/mooring
install -D -m 0755 dist/mooring-loopfile.mjs /usr/local/bin/mooring-loopfile
install -D -m 0644 systemd/mooring.service systemd/mooring-loopfile.service -t /etc/systemd/system
mkdir -p /etc/mooring/manifests
systemctl daemon-reload && systemctl enable --now mooring mooring-loopfile
sync`;

/** All tests share it: a start takes as long as several of them. */
let running: VmNode | undefined;

after(endRunning);

/**
 * Runs a test on a node with nothing on it: on that of the test before if it passed. The test leaves it as empty as it
 * was. Skipped, loudly, where there can be no machine. All tests of a file have the same kind of machine.
 */
export async function onVmNode(
  t: TestContext,
  tell: (node: VmNode) => Promise<void>,
  kind: MachineKind = PLAIN_MACHINE,
): Promise<void> {
  const image = await machineImage(kind);
  if ('missing' in image) {
    process.stderr.write(`\n*** SKIPPED: test/vm: ${image.missing} ***\n\n`);
    t.skip(image.missing);
    return;
  }
  try {
    const node = running ?? (await installed(image));
    await tell(node);
    await node.untilEmpty();
  } catch (error) {
    if (running !== undefined) await showJournal(running);
    await endRunning();
    throw error;
  }
}

async function installed(image: MachineImage): Promise<VmNode> {
  const scratch = mkdtempSync(join(tmpdir(), 'mooring-vm-product-'));
  try {
    const machine = await startVirtualMachine(image, builtProduct(scratch));
    const node = nodeOn(machine);
    running = node;
    await machine.must(INSTALL, STATUS_MS_MAX);
    await node.untilStatus('the driver', ({ drivers }) =>
      drivers.some(({ state }) => state === 'registered'),
    );
    assert.deepEqual(
      (await node.status()).drivers.map(({ name }) => name),
      [DRIVER],
      'the command says so',
    );
    return node;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function endRunning(): Promise<void> {
  const node = running;
  running = undefined;
  await node?.end();
}

function builtProduct(scratch: string): string {
  execFileSync(process.execPath, ['--import', import.meta.resolve('tsx'), 'build.ts'], { cwd: REPOSITORY });
  const archive = join(scratch, 'product.tar');
  execFileSync('tar', [
    '-cf',
    archive,
    '-C',
    REPOSITORY,
    `--transform=s,^,.${UNPACKED}/,`,
    'dist',
    'systemd',
  ]);
  return archive;
}

async function showJournal(machine: VirtualMachine): Promise<void> {
  const journal = machine.run('journalctl --no-pager -o cat -n 40 -u mooring -u mooring-loopfile', 20_000);
  const said = await journal.then(({ out }) => out, String);
  process.stderr.write(`journal:\n${said}\nconsole:\n${machine.lastWords()}\n`);
}

function nodeOn(machine: VirtualMachine): VmNode {
  const node: VmNode = {
    ...machine,
    async put(name, manifest) {
      const hidden = `/etc/mooring/manifests/.${name}.new`;
      const file = `/etc/mooring/manifests/${name}.yaml`;
      await machine.must(
        `cat > ${hidden} <<'MANIFEST' && mv ${hidden} ${file} && sync ${file}\n${manifest}MANIFEST\n`,
      );
    },
    async remove(...names) {
      await machine.must(`cd /etc/mooring/manifests; rm ${names.map((name) => `${name}.yaml`).join(' ')}`);
    },
    async create(name, size, facts = {}) {
      const kind = facts.fsType === undefined ? '' : `--fs ${facts.fsType}`;
      const command = `mooring-loopfile create --pool ${POOL} --name ${name} --size ${size} ${kind}`;
      const handle = (await machine.must(command)).trim();
      return volumeAndClaim({ driver: DRIVER, handle, name, capacity: size, ...facts });
    },
    async status() {
      return JSON.parse(await machine.must('mooring status -o json')) as StatusDocument;
    },
    async untilStatus(what, holds, waitMs = STATUS_MS_MAX) {
      const endMs = performance.now() + waitMs;
      for (let seen: StatusDocument | undefined; ; ) {
        const { code, out } = await machine.run(nextStatus(seen));
        seen = code === 0 ? (JSON.parse(out) as StatusDocument) : undefined;
        if (seen !== undefined && holds(seen)) return seen;
        if (performance.now() > endMs) {
          const people = await machine.run('mooring status -o wide');
          throw new Error(`waited ${waitMs} ms in vain for ${what}:\n${people.out}`);
        }
      }
    },
    untilReady: (pods) => node.untilStatus(`${pods} pods to be ready`, (status) => isSettled(status, pods)),
    async untilEmpty() {
      await node.untilStatus('nothing to be left', ({ summary }) => {
        const { pods, volumes, operationsRunning, operationsQueued } = summary;
        return pods + volumes + operationsRunning + operationsQueued === 0;
      });
      const left = `grep -F ' ${ROOT}/' /proc/1/mountinfo; losetup --list --noheadings; ls ${ROOT}/pods`;
      assert.equal((await machine.run(left)).out, '', 'left behind');
    },
    async mounts() {
      const { out } = await machine.run(`grep -F ' ${ROOT}/' /proc/1/mountinfo`);
      return out
        .trimEnd()
        .split('\n')
        .filter((line) => line !== '');
    },
  };
  return node;
}

function isSettled({ pods, volumes, summary, agent }: StatusDocument, wanted: number): boolean {
  const rungs = [...pods.flatMap((pod) => pod.volumes), ...volumes].flatMap((one) =>
    Object.values(one.rungs),
  );
  const reasons = [...pods.flatMap((pod) => pod.volumes), ...volumes].filter(({ reason }) => reason !== null);
  return (
    agent.complete &&
    pods.length === wanted &&
    pods.every(({ ready }) => ready) &&
    !rungs.includes('unsure') &&
    reasons.length + summary.operationsRunning + summary.operationsQueued + summary.strangers === 0
  );
}
