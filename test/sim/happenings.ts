/** From the name of an event to what it does to the world, and the operator's commands. */
import type { Result } from '../../mount/failure.ts';
import type { VolumeId } from '../../plugins/volume.ts';
import type { ActualVolume } from '../../reconciler/model/actual-state.ts';
import type { Reconciler } from '../../reconciler/reconciler.ts';
import type { SimPod } from './manifests.ts';
import { csiOf, keyOf } from './pod-volume.ts';
import type { Simulation } from './simulate.ts';
import type { EventWeights } from './swarm.ts';

const DAMAGES = ['half', 'unreadable', 'gone'] as const;

export function happen(sim: Simulation, event: keyof EventWeights): void {
  const { world } = sim;
  const { trouble } = world;
  switch (event) {
    case 'podComes':
      return world.addPod();
    case 'podGoes':
      return world.removePod();
    case 'walkedPodGoes':
      return world.removePod((pod) => isWalked(sim, pod));
    case 'podReplaced':
      return world.replacePod();
    case 'fileDamaged':
      return world.damageFile(DAMAGES, 'others');
    case 'storageVanishes':
      return world.damageFile(DAMAGES, 'storage');
    case 'contentChanges':
      return world.changeContent();
    case 'attributesChange':
      return world.changeAttributes();
    case 'diskChanges':
      return world.changeDisk();
    case 'driverStops':
      return trouble.stopDriver();
    case 'driverRestarts':
      return trouble.restartDriver();
    case 'agentCrashes':
      return sim.killAgent('killed');
    case 'agentStops':
      return sim.stopAgent();
    case 'reboots':
      return sim.reboot();
    case 'mountHeld':
      return trouble.holdMount();
    case 'mountTaken':
      world.keepsakes.clear();
      return trouble.takeMount();
    case 'recordDamaged':
      if (!trouble.damageRecord()) return;
      world.told.recordDamaged();
      // An operator's word is nowhere else than in the record.
      world.quarantine.forgetAll();
      sim.forgetLostRefusals();
      return sim.killAgent('killed while records were damaged');
    case 'podWrites':
      return world.writeFromPods((key) => sim.isPublished(key));
    case 'volumeGrows':
      return world.growVolume();
    case 'nodeMarked':
      return world.markNode();
    case 'attachmentLost':
      return world.loseAttachment();
    case 'attachmentReplaced':
      return world.replaceAttachment();
    case 'quarantined':
      return command(sim, 'quarantine');
    case 'quarantineEnded':
      return command(sim, 'endQuarantine');
    case 'deviceOpened':
      return trouble.openDevice();
    case 'diskUnplugged':
      return trouble.unplugDisk(({ handle }) => isShown(sim, handle) || isBeingPublished(sim, handle));
    case 'holdLost':
      return trouble.loseHold();
  }
}

/** A volume that another pod has with another group is being given to this pod's. */
function isWalked(sim: Simulation, pod: SimPod): boolean {
  const { running = [], actual } = runningIn(sim);
  const keys = new Set(pod.volumes.map((volume) => keyOf(pod, volume)));
  return running.some(({ operation, phase }) => {
    if (phase !== 'running' || operation.kind !== 'publish' || !keys.has(operation.publication)) return false;
    return [...(actual?.get(operation.volume)?.publications.values() ?? [])].some(({ presence, spec }) => {
      return presence.kind === 'present' && !spec.readOnly && spec.fsGroup?.gid !== pod.fsGroup?.gid;
    });
  });
}

function runningIn(sim: Simulation) {
  const reconciler = sim.view()?.reconciler;
  return { running: reconciler?.running(), actual: reconciler?.actual() };
}

/** Does a pod have it, and does the agent say so? */
function isShown(sim: Simulation, handle: string): boolean {
  for (const pod of sim.world.pods.values()) {
    for (const volume of pod.volumes) {
      if (csiOf(pod, volume)?.handle === handle && sim.isPublished(keyOf(pod, volume))) return true;
    }
  }
  return false;
}

function isBeingPublished(sim: Simulation, handle: string): boolean {
  const { running = [], actual } = runningIn(sim);
  return running.some(({ operation, phase }) => {
    if (phase !== 'running' || operation.kind !== 'publish') return false;
    const spec = actual?.get(operation.volume)?.spec;
    return spec?.kind === 'csi' && spec.volumeHandle === handle;
  });
}

/** An operator's word about any volume that is here; what it answers is noted when it is durable. */
function command(sim: Simulation, verb: 'quarantine' | 'endQuarantine'): void {
  const { life, world, time, trace } = sim;
  const reconciler = sim.view()?.reconciler as Reconciler | undefined;
  if (reconciler === undefined) return;
  const volumes = [...reconciler.actual().values()].filter((volume) => isMeant(volume, verb));
  if (volumes.length === 0) return;
  const { spec } = sim.pick(volumes);
  trace.add(`operator: ${verb} ${spec.id}`);
  const handle = spec.kind === 'csi' ? spec.volumeHandle : '';
  const answered: Promise<Result<void>> = reconciler[verb](spec.id as VolumeId);
  // An agent that dies before it has answered may have done it, or not: nobody is told (seed 61833559).
  if (verb === 'endQuarantine') life?.unanswered.add(handle);
  void answered.then(({ ok }) => {
    if (sim.life !== life) return;
    life?.unanswered.delete(handle);
    trace.add(`operator: ${verb} ${spec.id} ${ok ? 'done' : 'failed'}`);
    const backing = world.backingOfHandle(handle);
    if (backing === undefined || !ok) return;
    sim.tally.quarantines += 1;
    const devices = reconciler.actual().get(spec.id)?.quarantine?.devices ?? [];
    if (verb === 'quarantine') world.quarantine.begin(backing, time.nowMs(), devices);
    else {
      world.quarantine.end(backing, time.nowMs());
      world.attachmentWatch.forget(handle);
    }
  });
}

function isMeant({ spec, quarantine }: ActualVolume, verb: 'quarantine' | 'endQuarantine'): boolean {
  return spec.kind === 'csi' && (quarantine === undefined) === (verb === 'quarantine');
}
