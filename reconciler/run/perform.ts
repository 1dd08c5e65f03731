/** From an operation to the one plugin verb, and from its result to what was learnt. */
import { assert, type Result } from '../../mount/failure.ts';
import type { DeviceNumber } from '../../mount/host.ts';
import type {
  Namesake,
  Needs,
  PublicationCall,
  VolumeCall,
  VolumePlugin,
  VolumeSecrets,
} from '../../plugins/plugin.ts';
import type { CallReport } from '../../plugins/step.ts';
import type { Bytes, PublicationKey, PublicationSpec, VolumeSpec } from '../../plugins/volume.ts';
import {
  type ActualState,
  type ActualVolume,
  isBegun,
  isSetUp,
  type Learnt,
  type Presence,
  type VolumeOutcome,
} from '../model/actual-state.ts';
import type { DesiredVolume } from '../model/desired-state.ts';
import { isBeside, type Operation } from '../model/operation.ts';
import { presentDevices } from '../model/quarantine.ts';
import { placeBeside } from '../model/tombstone.ts';

export interface PerformContext extends CallReport {
  /** As begun: what the record says while the effect is under way. */
  readonly volume: ActualVolume;
  /** All that is believed to be on this node. */
  readonly actual: ActualState;
  /** What today's driver needs on the way up; what it was set up with on the way down (DR-16). */
  readonly needs: Needs;
  readonly wanted: DesiredVolume | undefined;
  /** The secrets that the teardown of a volume may take which nobody wants any more, if they are still there. */
  readonly unwantedSecrets: (spec: VolumeSpec) => VolumeSecrets;
  readonly stillWanted: () => boolean;
}

/** Never rejects for input or the world; settles when the effect has ended. */
export async function performVerb(
  plugin: VolumePlugin,
  operation: Operation,
  context: PerformContext,
): Promise<VolumeOutcome> {
  const call = volumeCall(context);
  switch (operation.kind) {
    case 'attach':
      return outcomeOf(await plugin.attach(call), ({ publishContext, attachmentUid }) => ({
        publishContext,
        attachmentUid,
      }));
    case 'detach':
      return outcomeOf(await plugin.detach(call), () => ({}));
    case 'stage':
      return outcomeOf(await plugin.stage(call), ({ stagedMount, isMountPoint, ungrown }) => ({
        mount: stagedMount,
        isMountPoint,
        sizeBytes: knownSize(context.wanted),
        ungrown,
      }));
    case 'expand':
      return expand(plugin, call, context);
    case 'clean': {
      assert(plugin.verifyClean !== undefined, 'only a volume that can be proven clean is in quarantine');
      return outcomeOf(await plugin.verifyClean(devicesOf(context)), () => ({}));
    }
    case 'unstage':
      return outcomeOf(await plugin.unstage(call), () => ({}));
    case 'publish': {
      const generation = context.wanted?.publications.get(operation.publication)?.generation;
      const place = publicationCall(call, context, operation.publication);
      const namesakes = (): readonly Namesake[] => namesakesOf(context, operation.publication);
      const companions = (): readonly PublicationSpec[] => companionsOf(context, operation.publication);
      const published = await plugin.publish({ ...place, namesakes, companions });
      return outcomeOf(published, ({ mount }) => ({
        mount,
        generation,
        sizeBytes: knownSize(context.wanted),
      }));
    }
    case 'unpublish': {
      const place = isBeside(operation)
        ? callBeside(call, context, operation.publication)
        : publicationCall(call, context, operation.publication);
      const namesakes = (): readonly Namesake[] => namesakesOf(context, operation.publication);
      return outcomeOf(await plugin.unpublish({ ...place, namesakes }), () => ({}));
    }
  }
}

function namesakesOf({ volume, actual }: PerformContext, key: PublicationKey): readonly Namesake[] {
  return [...actual.values()].flatMap(({ spec, publications }): readonly Namesake[] => {
    const place = spec.id === volume.spec.id ? undefined : publications.get(key);
    return place === undefined ? [] : [{ spec, publication: place.spec }];
  });
}

function companionsOf({ volume, actual }: PerformContext, key: PublicationKey): readonly PublicationSpec[] {
  const places = actual.get(volume.spec.id)?.publications.values() ?? [];
  return [...places].flatMap(({ presence, spec }) =>
    presence.kind === 'present' && spec.key !== key ? [spec] : [],
  );
}

async function expand(
  plugin: VolumePlugin,
  call: VolumeCall,
  context: PerformContext,
): Promise<VolumeOutcome> {
  const toBytes = context.wanted?.size?.bytes;
  // The wish went between the planning and the turn.
  if (toBytes === undefined || plugin.expand === undefined) return { kind: 'done', learnt: {} };
  const published = [...context.volume.publications.values()];
  const place = published.find(({ presence }) => presence.kind === 'present');
  const fsGroup = place === undefined ? call.fsGroup : place.spec.fsGroup;
  // A driver that came back able to stage is named no path where the volume was never staged.
  const stage = call.facts.needs.stage && context.volume.staged.kind !== 'absent';
  const facts = { ...call.facts, needs: { ...call.facts.needs, stage } };
  const asked = { ...call, facts, fsGroup, publication: place?.spec, mount: place?.mount, toBytes };
  const outcome = outcomeOf(await plugin.expand(asked), () => ({ sizeBytes: toBytes }));
  return outcome.kind === 'failed' ? { ...outcome, toBytes } : outcome;
}

/**
 * The devices to be searched for users. Taken down, the volume has none of them any more; one that another volume is
 * mounted from now is that one's: the kernel gives the number of a device that went to the next.
 */
function devicesOf({ volume, actual }: PerformContext): readonly DeviceNumber[] {
  const others = [...actual.values()].filter(({ spec }) => spec.id !== volume.spec.id);
  const taken = new Set(others.flatMap(presentDevices));
  return (volume.quarantine?.devices ?? []).filter((device) => !taken.has(device));
}

/** What a volume has that has just been set up: what was said of it, or what is wanted when nobody says. */
export function knownSize(wanted: DesiredVolume | undefined): Bytes | undefined {
  return wanted?.size?.knownBytes ?? wanted?.size?.bytes;
}

function volumeCall(context: PerformContext): VolumeCall {
  const { volume, needs, wanted, stillWanted, step, progress, unwantedSecrets } = context;
  return {
    spec: volume.spec,
    facts: {
      needs,
      publishContext: volume.publishContext,
      attachedNode: volume.attachedNode,
      ...(volume.attachmentUid === undefined ? {} : { isGranted: true }),
      standsUnder: isSetUp(volume) ? volume.attachmentUid : undefined,
      stagedMount: volume.stagedMount,
      ...(volume.wasMountPoint === true ? { wasMountPoint: true } : {}),
      ...(isDoubted(volume.staged) ? { isStageDoubted: true } : {}),
      ...(volume.isInherited === true ? { isInherited: true } : {}),
      ...(mayComeLate(volume) ? { mayComeLate: true } : {}),
    },
    secrets: wanted?.secrets ?? unwantedSecrets(volume.spec),
    stillWanted,
    fsGroup: volume.stagedFor?.fsGroup,
    step,
    progress,
    force: volume.quarantine !== undefined,
  };
}

/** A late detach makes nothing, and no call of ours follows when its time is over. */
function mayComeLate({ tombstones = [] }: ActualVolume): boolean {
  return tombstones.some(({ operation, untilMs }) => operation !== 'detach' && untilMs !== undefined);
}

/** As a publish of it would be called. */
export function publicationCallOf(context: PerformContext, key: PublicationKey): PublicationCall {
  return publicationCall(volumeCall(context), context, key);
}

function publicationCall(call: VolumeCall, context: PerformContext, key: PublicationKey): PublicationCall {
  const known = context.volume.publications.get(key);
  assert(known !== undefined, 'a begun publication is known');
  const wanted = context.wanted?.publications.get(key);
  // What is added comes before what is spread: the other way round Node.js 20 makes a hidden class for each object.
  return {
    publication: known.spec,
    mount: known.mount,
    files: wanted?.files,
    refresh: known.presence.kind === 'present',
    tokens: wanted?.tokens,
    ...call,
    fsGroup: known.spec.fsGroup,
    ...(isDoubted(known.presence) ? { isDoubted: true } : {}),
  };
}

/** Before the operation, too: what it begins to take down is unsure from then on, and was not before. */
function isDoubted(presence: Presence): boolean {
  return presence.kind === 'unsure' && !isBegun(presence);
}

/** As it was asked for, when the volume was set up otherwise than it stands. */
function callBeside(call: VolumeCall, context: PerformContext, key: PublicationKey): PublicationCall {
  const place = placeBeside(context.volume, key);
  assert(place !== undefined, 'what is given back beside a volume was planned from it');
  const { spec, publication } = place;
  return {
    ...call,
    spec,
    secrets: context.unwantedSecrets(spec),
    publication,
    mount: undefined,
    fsGroup: publication.fsGroup,
    files: undefined,
    refresh: false,
    tokens: undefined,
  };
}

function outcomeOf<T>(result: Result<T>, learnt: (value: T) => Learnt): VolumeOutcome {
  return result.ok
    ? { kind: 'done', learnt: learnt(result.value) }
    : { kind: 'failed', failure: result.failure };
}
