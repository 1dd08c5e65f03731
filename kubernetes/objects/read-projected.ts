/** Volumes of several sources (`projected`): what each of them names, and paths that contradict each other. */
import { cleanPath } from '../../plugins/pod/content-tree.ts';
import type {
  LabelSelector,
  Projection,
  TokenProjection,
  TrustBundleProjection,
  TrustBundles,
} from './content-source.ts';
import { type FieldReader, quoted } from '../fields/field-reader.ts';
import { OBJECT_NAME } from '../fields/object-name.ts';
import { readLabelRule } from '../fields/label-rule.ts';
import type { PodVolumeSource } from './objects.ts';
import { fitTogether, readContentPath, readContentSource, readDefaultMode } from './read-content.ts';
import { type PodFields, readDownwardFiles } from './read-downward.ts';

type Reader = (source: FieldReader, defaultMode: number, pod: PodFields) => Projection;

const READERS: Readonly<Record<string, Reader>> = {
  secret: (source, defaultMode) => readContentSource('secret', source.key('name'), source, defaultMode),
  configMap: (source, defaultMode) =>
    readContentSource('config-map', source.key('name'), source, defaultMode),
  downwardAPI: (source, defaultMode, pod) => {
    return { kind: 'downward-api', defaultMode, files: readDownwardFiles(source.key('items'), pod) };
  },
  serviceAccountToken: readToken,
  clusterTrustBundle: readTrustBundle,
};

/** What Kubernetes has besides; off in it unless it is asked for. */
const UNSUPPORTED = 'podCertificate';

const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist'] as const;

const EXPIRATION_SECONDS_MIN = 600;
const EXPIRATION_SECONDS_MAX = 2 ** 32;
const EXPIRATION_SECONDS_DEFAULT = 3_600;
const RIGHT_EXPIRATION = 'whole seconds from 600 (10 minutes) to 4294967296';
const AUDIENCE_BYTES_MAX = 1_024;

export function readProjectedSource(volume: FieldReader, pod: PodFields): PodVolumeSource {
  const list = volume.key('sources').list();
  if (list.some((source) => source.key(UNSUPPORTED).present))
    return { kind: 'unsupported', what: `projected with a source ${UNSUPPORTED}` };
  const defaultMode = readDefaultMode(volume);
  const sources = list.flatMap((source) => readProjection(source, defaultMode, pod) ?? []);
  checkPaths(volume.key('sources'), sources);
  return { kind: 'projected', sources };
}

function readProjection(source: FieldReader, defaultMode: number, pod: PodFields): Projection | undefined {
  const known = Object.keys(READERS).filter((one) => source.key(one).present);
  const [what = ''] = known;
  if (known.length > 1) source.refuse(`has more than one source: ${known.join(', ')}`);
  const read = READERS[what];
  if (read === undefined) source.refuse(`has no source; expected one of ${Object.keys(READERS).join(', ')}`);
  return read?.(source.key(what), defaultMode, pod);
}

/**
 * As the API server: no two items are written with one path. Where a path is not written (all keys of an object) or is
 * a token's, the later source counts.
 */
function checkPaths(reader: FieldReader, sources: readonly Projection[]): void {
  const written = sources.flatMap(writtenPaths).filter((path) => path !== '');
  const twice = written.find((path, index) => written.indexOf(path) !== index);
  if (twice !== undefined) reader.refuse(`${quoted(twice)} is the path of two files`);
  const tokens = sources.flatMap((one) => (one.kind === 'service-account-token' ? one.path : []));
  const all = new Set([...written, ...tokens].filter((path) => path !== ''));
  if (!fitTogether([...all])) reader.refuse('one path is a directory of another');
}

function writtenPaths(source: Projection): readonly string[] {
  switch (source.kind) {
    case 'secret':
    case 'config-map':
      return (source.items ?? []).map(({ path }) => path);
    case 'downward-api':
      return source.files.map(({ path }) => path);
    case 'cluster-trust-bundle':
      return [source.path];
    case 'service-account-token':
      return [];
  }
}

function readToken(source: FieldReader, defaultMode: number): TokenProjection {
  const isAudience = (text: string): boolean => Buffer.byteLength(text) <= AUDIENCE_BYTES_MAX;
  const expiration = source.key('expirationSeconds');
  return {
    kind: 'service-account-token',
    audience: source.key('audience').text(isAudience, `at most ${AUDIENCE_BYTES_MAX} bytes`) ?? '',
    expirationSeconds:
      expiration.integer(EXPIRATION_SECONDS_MIN, EXPIRATION_SECONDS_MAX, RIGHT_EXPIRATION) ??
      EXPIRATION_SECONDS_DEFAULT,
    path: cleanPath(readContentPath(source.key('path'))),
    defaultMode,
  };
}

function readTrustBundle(source: FieldReader, defaultMode: number): TrustBundleProjection {
  return {
    kind: 'cluster-trust-bundle',
    bundles: readBundles(source),
    optional: source.key('optional').flag(false),
    path: cleanPath(readContentPath(source.key('path'))),
    defaultMode,
  };
}

/** Names of bundles of a signer have a colon: `example.com:mysigner:foo`. */
function isBundleName(text: string): boolean {
  return text.length <= 253 && text.split(':').every((part) => OBJECT_NAME[0](part));
}

function readBundles(source: FieldReader): TrustBundles {
  const [name, signer, labels] = [source.key('name'), source.key('signerName'), source.key('labelSelector')];
  if (name.present === signer.present)
    source.refuse(`has ${name.present ? 'both' : 'neither'} name and signerName; expected one of them`);
  if (name.present && labels.present) labels.refuse('selects bundles of a signer, and one bundle is named');
  if (name.present) return { name: name.requiredText(isBundleName, 'the name of a ClusterTrustBundle') };
  const isSigner = (text: string): boolean => /^[a-z0-9.-]{1,253}\/[^/\s]{1,317}$/.test(text);
  return {
    signerName: signer.text(isSigner, 'the name of a signer, such as example.com/signer') ?? '',
    labels: labels.present ? readSelector(labels) : undefined,
  };
}

function readSelector(labels: FieldReader): LabelSelector {
  const matchLabels = labels.key('matchLabels').entries();
  return {
    matchLabels: Object.fromEntries(matchLabels.map(([key, value]) => [key, value.text() ?? ''])),
    matchExpressions: labels
      .key('matchExpressions')
      .list()
      .map((rule) => readLabelRule(rule, { key: 'the key of a label', operators: OPERATORS, standIn: 'In' })),
  };
}
