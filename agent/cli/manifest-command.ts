/** `mooring manifests list|accept` and `mooring forget`: the operator's word on manifests that are not there. */
import {
  type ManifestsChangeDocument,
  type ManifestsDocument,
  manifestsText,
} from '../status/manifest-document.ts';
import { paragraph } from './quarantine-text.ts';
import { askAndShow, complain, isNamed, lookAt, type Screen, type Shown } from './show.ts';
import type { Look } from '../../mount/text/table.ts';

const PATH = '/v1/manifests';
const LISTED = { path: PATH, kind: 'Manifests' };

export interface ManifestOptions {
  readonly socket: string;
  readonly output: 'text' | 'json';
}

export function listManifests(options: ManifestOptions, screen: Screen): Promise<Shown> {
  return askAndShow({ ...options, ...LISTED, text: manifestsText }, screen);
}

/** Accepts what the agent sees now: between the two requests it may become yet another one, and is refused then. */
export async function acceptDirectory(options: ManifestOptions, screen: Screen): Promise<Shown> {
  const seen = await lookAt<ManifestsDocument>({ socket: options.socket, ...LISTED });
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

/**
 * Nobody in particular and not all: that says who could be meant, and is a failure, for nothing was done. Both at once
 * are one, too: nobody may have thought of those that were not named.
 */
export async function forgetPods(
  pods: readonly string[],
  options: ManifestOptions & { readonly all: boolean },
  screen: Screen,
): Promise<Shown> {
  if (pods.length === 0 && !options.all) {
    await listManifests(options, screen);
    return complain('say which pods to forget, or --all', screen);
  }
  if (pods.length > 0 && options.all)
    return complain('say pods by name or --all, not both; nobody was forgotten', screen);
  if (!pods.every((pod) => isNamed(pod, screen))) return false;
  return change({ forget: options.all ? 'all' : pods }, undefined, options, screen);
}

function change(
  body: object,
  headline: string | undefined,
  options: ManifestOptions,
  screen: Screen,
): Promise<Shown> {
  const text = ({ pods, next }: ManifestsChangeDocument, look: Look): string => {
    const told = headline ?? (pods.length === 0 ? undefined : `Forgotten: ${pods.join(', ')}.`);
    return `${told === undefined ? '' : paragraph(told, look, true)}${paragraph(next, look)}`;
  };
  const { socket, output } = options;
  const asked = { socket, output, path: PATH, kind: 'ManifestsChange', text };
  return askAndShow({ ...asked, change: { method: 'POST', body } }, screen);
}
