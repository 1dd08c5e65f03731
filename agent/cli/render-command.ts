/** `mooring render`: the pods of a manifest, with their volumes replaced by what Mooring mounted. */
import { isUtf8 } from 'node:buffer';
import { readFileSync, statSync } from 'node:fs';
import { identify } from '../../kubernetes/objects/read-metadata.ts';
import { objectKey } from '../../kubernetes/objects/objects.ts';
import { DEFAULT_MANIFEST_LIMITS } from '../source/manifests/parse/manifest-limits.ts';
import { parseManifest } from '../source/manifests/parse/manifest.ts';
import { type RenderedPod, renderPod } from '../mounts/render-pod.ts';
import { problemText } from '../../mount/text/problem-text.ts';
import { askForMounts } from './mounts-command.ts';
import { complain, complainOfAll, json, type Screen, type Shown } from './show.ts';

/** Every pod of the file, each as a document of JSON, which is YAML; all or none. Other objects are left out. */
export async function renderFile(file: string, socket: string, screen: Screen): Promise<Shown> {
  const text = readManifest(file);
  if (text.kind === 'unreadable') return complain(`${file}: ${text.message}`, screen);
  const parsed = parseManifest(text.text, DEFAULT_MANIFEST_LIMITS);
  if (!parsed.ok) return complain(`${file}: ${parsed.failure.message}`, screen);
  const [refused] = parsed.value.flatMap(({ value, problems }) => (isOfOtherKind(value) ? [] : problems));
  if (refused !== undefined) return complain(`${file}: ${problemText(refused)}`, screen);
  const values = parsed.value.map(({ value }) => value).filter(isPod);
  if (values.length === 0) return complain(`${file}: there is no pod in it`, screen);
  const rendered: object[] = [];
  for (const value of values) {
    const identity = identify('Pod', value);
    if (identity === undefined) return complain(`${file}: a pod without a name`, screen);
    const answer = await askForMounts(socket, `pod:${objectKey(identity)}`);
    if (answer.kind !== 'ok') return complain(answer.message, screen);
    const one: RenderedPod = renderPod(value, answer.body);
    if (one.kind === 'impossible')
      return complainOfAll(
        one.problems.map((problem) => `${identity.text}: ${problem}`),
        screen,
      );
    rendered.push(one.pod);
  }
  screen.write(rendered.map(json).join('---\n'));
  return true;
}

type Reading =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'unreadable'; readonly message: string };

function readManifest(file: string): Reading {
  try {
    const { fileBytesMax } = DEFAULT_MANIFEST_LIMITS;
    if (statSync(file).size > fileBytesMax)
      return { kind: 'unreadable', message: `it is longer than ${fileBytesMax} bytes` };
    const bytes = readFileSync(file);
    // As the agent reads it: other bytes than were written would be another pod.
    return isUtf8(bytes)
      ? { kind: 'text', text: bytes.toString('utf8') }
      : { kind: 'unreadable', message: 'it is not UTF-8 text' };
  } catch (error) {
    return { kind: 'unreadable', message: `cannot be read (${(error as NodeJS.ErrnoException).code})` };
  }
}

function isPod(value: unknown): value is object {
  return kindOf(value) === 'Pod';
}

/** It says so itself: whatever else is wrong with it, as for the agent each document answers for itself alone. */
function isOfOtherKind(value: unknown): boolean {
  const kind = kindOf(value);
  return typeof kind === 'string' && kind !== 'Pod' && kind !== 'List';
}

function kindOf(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'kind' in value ? value.kind : undefined;
}
