/**
 * A machine of its own under qemu, always by software emulation: a kernel, systemd and a disk that outlive a reboot
 * and a power cut. Bound to our life: it ends when this process does.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectGuestAgent, type Finished, type GuestAgent } from './guest-agent.ts';
import type { MachineImage } from './machine-image.ts';

export interface VirtualMachine {
  /** Runs a shell command as root and waits for its end. */
  run(command: string, waitMs?: number): Promise<Finished>;
  /** As `run`; throws unless it ended well. Its output. */
  must(command: string, waitMs?: number): Promise<string>;
  /** Runs it again and again until its output matches. The output; throws with the last one after `waitMs`. */
  until(command: string, wanted: RegExp, waitMs?: number): Promise<string>;
  /** `systemctl reboot`, and the next boot is up. */
  reboot(): Promise<void>;
  /** The plug is pulled: what was not written through is lost. Off until `powerOn`. */
  powerCut(): Promise<void>;
  powerOn(): Promise<void>;
  /** The last lines of the console. */
  lastWords(): string;
  /** Nothing of it is left afterwards: no process, no file, no socket. */
  end(): Promise<void>;
}

/** Forty times what they take on a machine that has nothing else to do. */
const BOOT_MS_MAX = 600_000;
const COMMAND_MS_MAX = 600_000;
const REBOOT_MS_MAX = 600_000;
const PROBE_MS_MAX = 10_000;
const POLL_MS = 200;
const SOCKET_MS_MAX = 120_000;
const CONSOLE_LINES_SHOWN = 20;
const ARCHIVE = '/dev/disk/by-id/virtio-product';
const BOOT_ID = 'cat /proc/sys/kernel/random/boot_id';

/** `product`: a tar archive, unpacked to the root of the machine's disk; not needed any more when this settles. */
export async function startVirtualMachine(image: MachineImage, product: string): Promise<VirtualMachine> {
  const scratch = mkdtempSync(join(tmpdir(), 'mooring-vm-'));
  const consoleLog = join(scratch, 'console.log');
  const socket = join(scratch, 'agent.sock');
  let isUnpacked = false;
  let power:
    | { readonly qemu: ChildProcess; readonly gone: Promise<unknown>; readonly agent: GuestAgent }
    | undefined;

  function lastWords(): string {
    const text = existsSync(consoleLog) ? readFileSync(consoleLog, 'utf8') : '';
    return text.trimEnd().split(/\r?\n/).slice(-CONSOLE_LINES_SHOWN).join('\n  ');
  }

  /** Errors of the machine say what it said last. */
  async function told<T>(promise: Promise<T>): Promise<T> {
    try {
      return await promise;
    } catch (error) {
      throw new Error(
        `${error instanceof Error ? error.message : String(error)}\nconsole:\n  ${lastWords()}`,
      );
    }
  }

  function inside(): GuestAgent {
    if (power === undefined) throw new Error('the machine is off');
    return power.agent;
  }

  const machine: VirtualMachine = {
    lastWords,
    run: (command, waitMs = COMMAND_MS_MAX) => told(inside().run(command, waitMs)),
    async must(command, waitMs) {
      const { code, out } = await machine.run(command, waitMs);
      if (code !== 0) throw new Error(`${command}: ${code}\n${out}`);
      return out;
    },
    async until(command, wanted, waitMs = COMMAND_MS_MAX) {
      const endMs = performance.now() + waitMs;
      for (;;) {
        const { out } = await machine.run(command, waitMs);
        if (wanted.test(out)) return out;
        if (performance.now() > endMs)
          throw new Error(
            `waited ${waitMs} ms in vain for ${command} to say ${wanted}:\n${out}\n${lastWords()}`,
          );
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    },
    async reboot() {
      const before = await machine.must(BOOT_ID);
      await told(inside().tell('systemctl reboot'));
      const endMs = performance.now() + REBOOT_MS_MAX;
      for (;;) {
        await told(inside().answers(REBOOT_MS_MAX));
        // The agent of the boot that ends may answer once more and be gone before it says the rest.
        const now = await inside()
          .run(BOOT_ID, PROBE_MS_MAX)
          .catch(() => undefined);
        if (now?.code === 0 && now.out !== before) break;
        if (performance.now() > endMs)
          throw new Error(`no other boot within ${REBOOT_MS_MAX} ms:\n${lastWords()}`);
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
      await booted(machine);
    },
    async powerOn() {
      // The archive is a disk of the first life only.
      const archive = isUnpacked ? [] : archiveDisk(product);
      const argv = ['--pdeathsig', 'KILL', '--', ...qemuArgv(image, scratch), ...archive];
      const qemu = spawn('setpriv', argv, { stdio: ['ignore', 'ignore', 'inherit'] });
      const gone = once(qemu, 'exit');
      try {
        const agent = await connected(socket, qemu);
        power = { qemu, gone, agent };
      } catch (error) {
        qemu.kill('SIGKILL');
        await gone;
        throw error;
      }
      await told(inside().answers(BOOT_MS_MAX));
      await booted(machine);
    },
    async powerCut() {
      const { qemu, gone, agent } = power ?? {};
      power = undefined;
      agent?.close();
      qemu?.kill('SIGKILL');
      await gone;
      rmSync(socket, { force: true });
    },
    async end() {
      await machine.powerCut();
      rmSync(scratch, { recursive: true, force: true });
    },
  };

  try {
    execFileSync('qemu-img', [
      'create',
      '-q',
      '-f',
      'qcow2',
      '-F',
      'raw',
      '-b',
      image.disk,
      join(scratch, 'disk'),
    ]);
    await machine.powerOn();
    // A machine with little to start is up before its devices all have their names.
    await machine.must(`udevadm wait --timeout=${BOOT_MS_MAX / 1_000} ${ARCHIVE} && tar -xf ${ARCHIVE} -C /`);
    isUnpacked = true;
    return machine;
  } catch (error) {
    await machine.end();
    throw error;
  }
}

async function booted(machine: VirtualMachine): Promise<void> {
  await machine.until('systemctl is-system-running', /^(running|degraded)$/m, BOOT_MS_MAX);
}

/**
 * No memory of the emulated disk's own: a write that the machine was told is done is in the file, as far as this
 * machine's kernel goes, and it stays up. KVM is never tried: a machine that has /dev/kvm may still not run a guest.
 */
function qemuArgv(image: MachineImage, scratch: string): readonly string[] {
  const disk = `if=none,id=disk,file=${join(scratch, 'disk')},format=qcow2,cache=unsafe`;
  const port = `socket,id=agent,path=${join(scratch, 'agent.sock')},server=on,wait=off`;
  // no_timer_check: a machine that gets little of its processor finds that its timer does not tick, and panics.
  const kernelWords =
    'console=ttyS0 root=/dev/nvme0n1 rw quiet loglevel=4 panic=-1 mitigations=off nokaslr edd=off no_timer_check';
  return [
    'qemu-system-x86_64',
    ...[
      '-machine',
      'q35',
      '-accel',
      'tcg,thread=multi,tb-size=512',
      '-cpu',
      'max',
      '-smp',
      '2',
      '-m',
      '1024',
    ],
    ...['-nodefaults', '-display', 'none', '-nic', 'none', '-monitor', 'none'],
    ...[
      '-chardev',
      `file,id=console,append=on,path=${join(scratch, 'console.log')}`,
      '-serial',
      'chardev:console',
    ],
    ...['-kernel', image.kernel, '-append', `${kernelWords} random.trust_cpu=1`],
    ...['-drive', disk, '-device', 'nvme,drive=disk,serial=disk'],
    ...['-chardev', port, '-device', 'virtio-serial-pci'],
    ...['-device', 'virtserialport,chardev=agent,name=org.qemu.guest_agent.0', '-device', 'virtio-rng-pci'],
  ];
}

function archiveDisk(path: string): readonly string[] {
  const drive = `if=none,id=product,file=${path},format=raw,readonly=on`;
  return ['-drive', drive, '-device', 'virtio-blk-pci,drive=product,serial=product'];
}

/** The socket's file is there a moment before anybody listens at it. */
async function connected(path: string, owner: ChildProcess): Promise<GuestAgent> {
  const endMs = performance.now() + SOCKET_MS_MAX;
  for (;;) {
    const agent = existsSync(path) ? await connectGuestAgent(path).catch(() => undefined) : undefined;
    if (agent !== undefined) return agent;
    if (owner.exitCode !== null || owner.signalCode !== null)
      throw new Error(`qemu ended: ${owner.exitCode}`);
    if (performance.now() > endMs) throw new Error(`qemu listened at no socket within ${SOCKET_MS_MAX} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
