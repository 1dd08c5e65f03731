/**
 * Quarantine: a volume that may belong to another node now, while this one still has it mounted. Pure.
 *
 * Nothing is staged or published; what stands is taken down, wanted or not; and it is left only when the machine was
 * searched and nobody can write to the device any more, or by a reboot. No released CSI has this, so the state is ours
 * alone (CSI pull 477; KEP-2268 leaves the gap; D-38).
 */
import type { Failure } from '../../mount/failure.ts';
import type { DeviceNumber, MountIdentity } from '../../mount/host.ts';
import { type ActualVolume, isSetUp, type Presence, type QuarantineReason } from './actual-state.ts';

export function enterQuarantine(
  volume: ActualVolume,
  reason: QuarantineReason,
  wallMs: number,
): ActualVolume {
  if (volume.quarantine !== undefined) return volume;
  return {
    ...volume,
    quarantine: { reason, sinceWallMs: wallMs, devices: devicesOf(volume), verified: false },
  };
}

/** A mount that was still being made when the quarantine began is searched for, too. */
export function noteDevices(volume: ActualVolume): ActualVolume {
  const { quarantine } = volume;
  if (quarantine === undefined) return volume;
  const devices = [...new Set([...quarantine.devices, ...devicesOf(volume)])];
  return { ...volume, quarantine: { ...quarantine, devices } };
}

/** Something of it stands that came after its proof, as a call may that was given up long ago. */
export function isProofOutdated(volume: ActualVolume): boolean {
  return volume.quarantine?.verified === true && isSetUp(volume);
}

/** To be proven clean again, once it is down. */
export function withoutProof(volume: ActualVolume): ActualVolume {
  const { quarantine, ...rest } = noteDevices(volume);
  return { ...rest, quarantine: quarantine && { ...quarantine, verified: false } };
}

/**
 * The volume with its quarantine ended: that it is attached here is only believed again when it was asked for, and
 * under which attachment is noted anew.
 */
export function leaveQuarantine(volume: ActualVolume): ActualVolume {
  const attached: Presence =
    volume.attached.kind === 'absent' ? volume.attached : { kind: 'unsure', because: AFTER_QUARANTINE };
  return { ...volume, attached, attachmentUid: undefined, quarantine: undefined };
}

/** Verified clean, and nothing stands any more for what it was put there for. */
export function mayLeave(volume: ActualVolume, standing: QuarantineReason | undefined): boolean {
  return volume.quarantine?.verified === true && standing === undefined;
}

/** Anonymous file systems (major 0) are left out: the kernel gives their numbers to the next mount at once. */
function devicesOf({ stagedMount, publications }: ActualVolume): readonly DeviceNumber[] {
  return realDevices([stagedMount, ...[...publications.values()].map(({ mount }) => mount)]);
}

/** Those that a volume is mounted from beyond doubt. */
export function presentDevices({ staged, stagedMount, publications }: ActualVolume): readonly DeviceNumber[] {
  const present = [...publications.values()].filter(({ presence }) => presence.kind === 'present');
  const mounts = present.map(({ mount }) => mount);
  return realDevices(staged.kind === 'present' ? [stagedMount, ...mounts] : mounts);
}

function realDevices(mounts: readonly (MountIdentity | undefined)[]): readonly DeviceNumber[] {
  // What counts of a bound device node is the device, not the file system that the node lies on.
  const devices = mounts.map((mount) => mount?.blockDevice ?? mount?.device);
  const isReal = (one: string | undefined): one is DeviceNumber => one !== undefined && !one.startsWith('0:');
  return [...new Set(devices.filter(isReal))];
}

const AFTER_QUARANTINE: Failure = {
  code: 'quarantined',
  message: 'the volume was in quarantine: another node may have had it',
  effect: 'unknown',
};

const MEANING: Readonly<Record<QuarantineReason, string>> = {
  'attachment-lost': 'its attachment was taken away while it was mounted here',
  'attachment-replaced': 'its attachment was deleted and made anew while it was mounted here',
  'node-out-of-service': 'this node is marked node.kubernetes.io/out-of-service',
  operator: 'an operator put it there',
};

/** Why a quarantined volume is not set up, for people. */
export function quarantineFailure(reason: QuarantineReason): Failure {
  const message = `in quarantine, because ${MEANING[reason]}; nothing is staged or published until it is clean`;
  return { code: 'quarantined', message, effect: 'none' };
}
