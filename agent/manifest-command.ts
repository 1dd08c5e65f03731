/** `mooring manifests list|accept` and `mooring forget`: the operator's word on manifests that are not there. */
import { changeAtAgent, getFromAgent } from './api-client.ts';
import { type ManifestsChangeDocument, type ManifestsDocument, manifestsText } from './manifest-document.ts';
import { paragraph } from './quarantine-text.ts';
import { complain, json, type Screen, type Shown } from './show.ts';

const TIMEOUT_MS = 10_000;
/** A change is answered when it is on disk, and a disk may be slow. */
const CHANGE_TIMEOUT_MS = 30_000;
const PATH = '/v1/manifests';

export interface ManifestOptions {
  readonly socket: string;
  readonly output: 'text' | 'json';
}

export async function listManifests({ socket, output }: ManifestOptions, screen: Screen): Promise<Shown> {
  const answer = await look(socket);
  if (answer.kind !== 'ok') return complain(answer.message, screen);
  screen.write(output === 'json' ? json(answer.body) : manifestsText(answer.body, screen.look()));
  return true;
}

/** Accepts what the agent sees now: between the two requests it may become yet another one, and is refused then. */
export async function acceptDirectory(options: ManifestOptions, screen: Screen): Promise<Shown> {
  const seen = await look(options.socket);
  if (seen.kind !== 'ok') return complain(seen.message, screen);
  const { replaced } = seen.body;
  if (replaced === null) {
    const message =
      'there is nothing to accept: the manifests are in the directory that they have always been in';
    return complain(message, screen);
  }
  return change(
    { accept: replaced.sight },
    `${replaced.directory} is accepted: ${replaced.is}.`,
    options,
    screen,
  );
}

/** Nobody in particular and not all: that says who could be meant, and is a failure, for nothing was done. */
export async function forgetPods(
  pods: readonly string[],
  options: ManifestOptions & { readonly all: boolean },
  screen: Screen,
): Promise<Shown> {
  if (pods.length === 0 && !options.all) {
    await listManifests(options, screen);
    return complain('say which pods to forget, or --all', screen);
  }
  return change({ forget: options.all ? 'all' : pods }, undefined, options, screen);
}

function look(socket: string) {
  return getFromAgent<ManifestsDocument>({ socket, path: PATH, timeoutMs: TIMEOUT_MS, kind: 'Manifests' });
}

async function change(
  body: object,
  headline: string | undefined,
  { socket, output }: ManifestOptions,
  screen: Screen,
): Promise<Shown> {
  const answer = await changeAtAgent<ManifestsChangeDocument>({
    socket,
    path: PATH,
    timeoutMs: CHANGE_TIMEOUT_MS,
    kind: 'ManifestsChange',
    method: 'POST',
    body,
  });
  if (answer.kind !== 'ok') return complain(answer.message, screen);
  const { pods, next } = answer.body;
  const told = headline ?? (pods.length === 0 ? undefined : `Forgotten: ${pods.join(', ')}.`);
  const text = [
    ...(told === undefined ? [] : [paragraph(told, screen.look(), true)]),
    paragraph(next, screen.look()),
  ];
  screen.write(output === 'json' ? json(answer.body) : text.join(''));
  return true;
}
