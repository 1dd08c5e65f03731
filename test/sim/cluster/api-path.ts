/** From what a request asks for to the resource, the object and its part. Pure. */
export interface ApiKind {
  readonly kind: string;
  readonly apiVersion: string;
  /** Its status is written by requests of its own, and by no others. */
  readonly hasStatus: boolean;
  /** Beside the name. */
  readonly fieldLabels: readonly string[];
}

export interface ApiTarget extends ApiKind {
  /** `/api/v1/namespaces/default/pods`. */
  readonly collection: string;
  readonly resource: string;
  readonly namespace: string | undefined;
  /** Undefined: of all of them. */
  readonly name: string | undefined;
  /** `status`, `token`; empty: of the whole object. */
  readonly part: string;
  readonly query: URLSearchParams;
}

const core = (kind: string, hasStatus = false, fieldLabels: readonly string[] = []): ApiKind => ({
  ...{ kind, apiVersion: 'v1', hasStatus, fieldLabels },
});
const storage = (kind: string, hasStatus = false): ApiKind => ({
  ...{ kind, apiVersion: 'storage.k8s.io/v1', hasStatus, fieldLabels: [] },
});

const KINDS: ReadonlyMap<string, ApiKind> = new Map([
  ['pods', core('Pod', true, ['spec.nodeName', 'status.phase'])],
  ['nodes', core('Node', true)],
  ['secrets', core('Secret', false, ['type'])],
  ['configmaps', core('ConfigMap')],
  ['serviceaccounts', core('ServiceAccount')],
  ['events', core('Event')],
  ['persistentvolumeclaims', core('PersistentVolumeClaim', true)],
  ['persistentvolumes', core('PersistentVolume', true)],
  ['csidrivers', storage('CSIDriver')],
  ['csinodes', storage('CSINode')],
  ['volumeattachments', storage('VolumeAttachment', true)],
]);

const PATH =
  /^(\/api\/v1|\/apis\/storage\.k8s\.io\/v1)(?:\/namespaces\/([^/]+))?\/([a-z]+)(?:\/([^/]+))?(?:\/(\w+))?$/;

/** Undefined for what the server does not have. */
export function readTarget(target: string): ApiTarget | undefined {
  const { pathname, searchParams } = new URL(target, 'https://server');
  const [, root = '', namespace, resource = '', name, part = ''] = PATH.exec(pathname) ?? [];
  const kind = KINDS.get(resource);
  if (kind === undefined || root.endsWith(kind.apiVersion) === false) return undefined;
  const within = namespace === undefined ? '' : `/namespaces/${decodeURIComponent(namespace)}`;
  return {
    ...kind,
    collection: `${root}${within}/${resource}`,
    resource,
    namespace,
    name: name === undefined ? undefined : decodeURIComponent(name),
    part,
    query: searchParams,
  };
}
