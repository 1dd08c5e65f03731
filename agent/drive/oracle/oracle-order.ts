/** Rules about order, overlap and repetition of calls. Pure; ids of docs/CSI.md. */
import type { OracleContext } from './oracle-context.ts';
import { argumentsOf, type OpenCall, placeOf, stableJson, type VolumeHistory } from './oracle-history.ts';
import { attaches, stages } from './oracle-nature.ts';

/** They look and change nothing; still one call of a volume at a time. */
const LOOKS: ReadonlySet<string> = new Set([
  'NodeGetVolumeStats',
  'NodeGetVolumeHealth',
  'ControllerGetVolume',
  'ControllerGetVolumeHealth',
  'ValidateVolumeCapabilities',
]);

/** Judges when a call comes that has just arrived, before it counts as open. */
export function judgeOrder(context: OracleContext): void {
  const { call, nature, history, violate } = context;
  if (nature.starting && (call.method.startsWith('Node') || history !== undefined)) {
    if (!call.method.startsWith('NodeGetInfo') && !call.method.endsWith('GetCapabilities'))
      violate('A-009', `${call.method} while the last Probe said that the driver is still starting`);
  }
  if (history === undefined) return;
  judgeOverlap(context, history);
  judgeRepetition(context, history);
  judgeLadder(context, history);
}

function judgeOverlap({ call, options, violate }: OracleContext, history: VolumeHistory): void {
  for (const open of history.open) {
    if (options.parallelPublish === true && mayOverlap(call, open)) continue;
    const duty = LOOKS.has(call.method) || LOOKS.has(open.method) ? 'A-076' : 'A-030';
    violate(duty, `${call.method} while ${open.method} of ${call.request.volumeId} is open`);
  }
}

function mayOverlap(a: OpenCall, b: OpenCall): boolean {
  const { targetPath: one } = a.request;
  const { targetPath: other } = b.request;
  return one !== undefined && other !== undefined && one !== other;
}

function judgeRepetition({ call, options, violate }: OracleContext, history: VolumeHistory): void {
  if (history.unimplemented.has(call.method))
    violate('A-035', `${call.method} again after UNIMPLEMENTED, with no look at the capabilities between`);
  if (LOOKS.has(call.method)) return;
  const place = placeOf(call);
  const now = argumentsOf(call);
  const before = history.pending.get(place);
  if (before !== undefined && before !== now)
    violate('A-032', `${place}: tried again with other arguments: ${before} -> ${now}`);
  if (options.steadyWish !== true || !call.method.startsWith('Node')) return;
  const lasting = history.lasting.get(place);
  history.lasting.set(place, now);
  if (lasting !== undefined && lasting !== now && lasting !== before)
    violate('A-032', `${place}: arguments changed though the wish did not: ${lasting} -> ${now}`);
}

function judgeLadder(context: OracleContext, history: VolumeHistory): void {
  const { call, nature, violate } = context;
  const { volumeId } = call.request;
  switch (call.method) {
    case 'NodeStageVolume':
      if (attaches(nature) === true && history.attached === 'none')
        violate('A-053', `${volumeId} staged before ControllerPublishVolume succeeded`);
      judgeStage(context, history);
      return;
    case 'NodePublishVolume':
      judgePublish(context, history);
      return;
    case 'NodeUnstageVolume':
      for (const [target, { rung }] of history.published)
        violate('A-058', `${volumeId} unstaged while its publication at ${target} is ${rung}`);
      return;
    case 'ControllerUnpublishVolume':
      if (history.published.size > 0) violate('A-067', `${volumeId} detached while it is published`);
      if (history.staged !== 'none')
        violate('A-086', `${volumeId} detached while its stage is ${history.staged}`);
      return;
    case 'NodeExpandVolume':
      judgeExpand(context, history);
      return;
    case 'NodeGetVolumeStats':
      judgeStats(context, history);
      return;
    case 'DeleteVolume':
      if (history.published.size > 0 || history.staged !== 'none' || history.attached !== 'none')
        violate('A-086', `${volumeId} deleted while it is in use`);
  }
}

function judgeStage({ call, violate }: OracleContext, history: VolumeHistory): void {
  const { request } = call;
  if (history.staged === 'none') return;
  if (history.stagingPath !== undefined && history.stagingPath !== request.stagingTargetPath)
    violate('A-055', `${request.volumeId} staged at a second path, ${request.stagingTargetPath}`);
  const wanted = stableJson(request.volumeCapability);
  if (history.staged === 'yes' && history.stagedAs !== undefined && history.stagedAs !== wanted)
    violate(
      'A-057',
      `${request.volumeId} staged again with another capability: ${history.stagedAs} -> ${wanted}`,
    );
}

function judgePublish({ call, nature, violate }: OracleContext, history: VolumeHistory): void {
  const { request } = call;
  if (stages(nature) === true && history.staged !== 'yes')
    violate('A-054', `${request.volumeId} published while its stage is ${history.staged}`);
  if (attaches(nature) === true && history.attached !== 'yes' && history.staged !== 'yes')
    violate('A-060', `${request.volumeId} published while its attachment is ${history.attached}`);
  const { stagingPath } = history;
  if (stages(nature) === true && stagingPath !== undefined && request.stagingTargetPath !== stagingPath) {
    const given = request.stagingTargetPath;
    if (given !== '')
      violate('A-060', `published from ${given}, but ${request.volumeId} is staged at ${stagingPath}`);
  }
  const before = history.published.get(request.targetPath ?? '');
  const capability = stableJson(request.volumeCapability);
  if (before?.rung === 'yes' && !before.as.includes(`"volumeCapability":${capability}`))
    violate('A-062', `${request.volumeId} published again at ${request.targetPath} with another capability`);
}

function judgeExpand({ call, nature, violate }: OracleContext, history: VolumeHistory): void {
  const { volumeId } = call.request;
  if (history.expandRefused)
    violate('A-071', `${volumeId} expanded again after FAILED_PRECONDITION, while it is in use all the time`);
  if (stages(nature) === true && history.staged !== 'yes')
    violate('A-069', `${volumeId} expanded while its stage is ${history.staged}`);
  if (stages(nature) === false && ![...history.published.values()].some(({ rung }) => rung === 'yes'))
    violate('A-069', `${volumeId} expanded while it is published nowhere`);
}

function judgeStats({ call, nature, violate }: OracleContext, history: VolumeHistory): void {
  const { volumeId, volumePath = '', stagingTargetPath } = call.request;
  if (volumePath !== history.stagingPath && !history.published.has(volumePath))
    violate('A-068', `stats of ${volumeId} at ${volumePath}, where it is neither staged nor published`);
  // What was never staged, as an inline volume is not, has no such path.
  if (stages(nature) === true && history.staged !== 'none' && stagingTargetPath === '')
    violate('A-068', `stats of ${volumeId} without staging_target_path`, 'should');
}
