/** The files of a volume of several sources, and the generation they belong to. */
import { Buffer } from 'node:buffer';
import { ok, type Result } from '../../mount/failure.ts';
import type {
  ProjectedSource,
  Projection,
  TokenProjection,
  TrustBundleProjection,
} from '../../kubernetes/objects/content-source.ts';
import type { Pod } from '../../kubernetes/objects/objects.ts';
import { sha256Hex } from '../../plugins/layout/layout.ts';
import { Sensitive } from '../../plugins/secret/sensitive.ts';
import { type ContentFiles, contentFiles, type ContentPod } from './content-files.ts';
import { downwardFiles } from './downward-files.ts';
import type { Sources } from './resolved.ts';

/** For a pod with a group the file is its owner's alone, and the group's by the group's own bits (as the kubelet). */
const GROUPED_TOKEN_MODE = 0o600;

export type ProjectingPod = ContentPod & Pick<Pod, 'fsGroup'>;

/**
 * Whole or not at all: what keeps one source from being there, by `reference-missing` or `token-missing`, keeps all of
 * the volume as it is.
 */
export function projectedFiles(
  sources: Sources,
  pod: ProjectingPod,
  { sources: projections }: ProjectedSource,
): Result<ContentFiles> {
  const files = new Map<string, { readonly content: Uint8Array; readonly mode: number }>();
  const generations: string[] = [];
  for (const projection of projections) {
    const content = filesOf(sources, pod, projection);
    if (!content.ok) return content;
    generations.push(content.value.generation);
    for (const [path, file] of content.value.files?.reveal() ?? []) files.set(path, file);
  }
  const generation = sha256Hex(JSON.stringify(generations)).slice(0, 16);
  return ok({ files: new Sensitive(files), generation });
}

function filesOf(sources: Sources, pod: ProjectingPod, projection: Projection): Result<ContentFiles> {
  switch (projection.kind) {
    case 'secret':
    case 'config-map':
      return contentFiles(sources.desired, pod, projection);
    case 'downward-api':
      return ok(downwardFiles(projection, sources.allocatable));
    case 'service-account-token':
      return tokenFile(sources, pod, projection);
    case 'cluster-trust-bundle':
      return bundleFile(sources, pod, projection);
  }
}

function tokenFile(sources: Sources, pod: ProjectingPod, wanted: TokenProjection): Result<ContentFiles> {
  const { audience, expirationSeconds } = wanted;
  const answer = sources.options.tokens.tokenFor(pod.reference, { audience, expirationSeconds });
  if (answer.kind === 'none') return { ok: false, failure: answer.failure };
  return ok(oneFile(pod, wanted, answer.token.reveal(), answer.issue));
}

function bundleFile(
  sources: Sources,
  pod: ProjectingPod,
  wanted: TrustBundleProjection,
): Result<ContentFiles> {
  const answer = sources.options.trustBundles.bundleFor(wanted.bundles);
  if (answer.kind === 'bundle') return ok(oneFile(pod, wanted, answer.pem, answer.revision));
  const isLeftEmpty = wanted.optional && answer.kind === 'none';
  return isLeftEmpty ? ok(oneFile(pod, wanted, '', 'absent')) : { ok: false, failure: answer.failure };
}

function oneFile(
  { fsGroup }: ProjectingPod,
  { path, defaultMode }: TokenProjection | TrustBundleProjection,
  text: string,
  version: string,
): ContentFiles {
  const mode = fsGroup === undefined ? defaultMode : GROUPED_TOKEN_MODE;
  return {
    files: new Sensitive(new Map([[path, { content: Buffer.from(text), mode }]])),
    generation: JSON.stringify([path, mode, version]),
  };
}
