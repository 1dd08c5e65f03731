/** What `mooring status` remarks on below its table: conditions of volumes that no column has. */
import {
  lateEffectSentence,
  quarantineSentence,
  reasonSentence,
  replacedSentence,
  unreadySentence,
  vanishedSentence,
  massRemovalSentence,
} from '../status/sentence.ts';
import type { ClusterStatus, StatusDocument } from '../status/status-document.ts';
import type { Reason, VolumeStatus } from '../status/volume-status.ts';
import { type Colour, type Look, paint, wrap } from '../../mount/text/table.ts';
import { problemText } from '../../mount/text/problem-text.ts';

/** An operation that has just begun needs no sentence of its own. */
const RUNNING_WORTH_TELLING_MS = 5_000;

interface Remark {
  readonly text: string;
  readonly colour: Colour;
}

/** What is wrong beside the pods' volumes: each in a line of its own. */
export function remarksOf(status: StatusDocument, look: Look): readonly string[] {
  const { agent, sources, unreadableRecords, summary } = status;
  const remarks: Remark[] = [];
  if (!agent.complete) {
    const text = 'Not everything that is wanted has been read yet; nothing is taken down before.';
    remarks.push({ text, colour: 'yellow' });
  }
  const { cluster, replaced, vanished, unknown } = sources;
  if (cluster !== null && cluster.state !== 'following') remarks.push(clusterRemark(cluster));
  const clock = cluster?.detachClock ?? null;
  if (clock !== null) remarks.push({ text: capital(unreadySentence(clock)), colour: 'red' });
  if (replaced !== null) remarks.push({ text: capital(replacedSentence(replaced)), colour: 'red' });
  if (vanished !== null) remarks.push({ text: capital(vanishedSentence(vanished, unknown)), colour: 'red' });
  // The first of these remarks has said it of the directory.
  const isTold = (origin: string): boolean => origin === replaced?.directory;
  for (const rejected of sources.rejected) {
    const { subject, origin } = rejected;
    if (isTold(origin)) continue;
    const what = subject === null ? origin : `${subject} in ${origin}`;
    remarks.push({ text: `Rejected: ${what}: ${problemText(rejected)}`, colour: 'red' });
  }
  for (const origin of sources.unknown) {
    if (isTold(origin)) continue;
    remarks.push({ text: `Cannot be read now, what came from it is kept: ${origin}`, colour: 'yellow' });
  }
  if (sources.vanishing !== null) {
    const text = capital(massRemovalSentence(sources.vanishing, status.pods.length));
    remarks.push({ text, colour: 'red' });
  }
  for (const volume of status.volumes) {
    const remark = remarkOn(volume);
    if (remark !== undefined) remarks.push(remark);
  }
  for (const { file, message } of unreadableRecords) {
    remarks.push({ text: `Record cannot be read back: ${file}: ${message}`, colour: 'red' });
  }
  if (summary.abandonedCalls > 0) {
    const calls = summary.abandonedCalls === 1 ? 'call that does' : 'calls that do';
    remarks.push({ text: `${summary.abandonedCalls} ${calls} not end and cannot be killed.`, colour: 'red' });
  }
  return remarks.flatMap(({ text, colour }) => {
    const lines = look.widthMax === undefined ? [text] : wrap(text, look.widthMax);
    return lines.map((line, index) => `${index === 0 ? '' : '  '}${paint(line, colour, look)}`);
  });
}

function clusterRemark({ server, state, since, message }: ClusterStatus): Remark {
  const why = message ?? '';
  if (state === 'connecting')
    return { text: `The cluster at ${server} has not been read yet: ${why}`, colour: 'yellow' };
  const text = `The cluster at ${server} cannot be followed since ${since}, what it said last counts: ${why}`;
  return { text, colour: 'red' };
}

function capital(sentence: string): string {
  return `${sentence.slice(0, 1).toUpperCase()}${sentence.slice(1)}.`;
}

/** A volume that no pod has or wants is in no row of the table. */
function remarkOn(volume: VolumeStatus): Remark | undefined {
  const { name, stranger, reason, driver } = volume;
  const quarantine = quarantineSentence(volume);
  const isTold = reason !== null && reason.kind !== 'quarantined' && isWorthTelling(reason);
  const obstacle = isTold ? reasonSentence(reason, driver) : undefined;
  const [late, ...more] = volume.lateEffects.map(lateEffectSentence);
  const others = more.length === 0 ? undefined : `and ${more.length} more like it`;
  const sentences = [quarantine, obstacle, late, others].filter((one) => one !== undefined);
  const told = sentences.length === 0 ? '' : `: ${sentences.join('; ')}`;
  if (stranger)
    return { text: `Found on disk, and nobody wants it: volume ${name}${told}`, colour: 'yellow' };
  if (told === '' || volume.wantedBy.length + volume.publishedTo.length > 0) return undefined;
  return {
    text: `Of no pod any more: volume ${name}${told}`,
    colour: quarantine === undefined ? 'yellow' : 'red',
  };
}

export function isWorthTelling({ kind, forMs, lastFailure }: Reason): boolean {
  return kind !== 'running' || lastFailure !== null || (forMs ?? 0) >= RUNNING_WORTH_TELLING_MS;
}
