/** A kubeconfig: which server, whom to believe, and who we are there. Pure. */
import { Buffer } from 'node:buffer';
import { type AbsolutePath, parseAbsolutePath } from '../../mount/host.ts';
import { Sensitive } from '../../plugins/secret/sensitive.ts';
import { FieldReader, type Problem, quoted } from '../fields/field-reader.ts';

/** What stands in the file itself, or in another one that is read when it is needed, and again when it has changed. */
export type Material =
  | { readonly kind: 'bytes'; readonly bytes: Sensitive<Uint8Array> }
  | { readonly kind: 'file'; readonly path: AbsolutePath };

export type ApiIdentity =
  | { readonly kind: 'certificate'; readonly certificate: Material; readonly key: Material }
  | { readonly kind: 'token'; readonly token: Material };

/** How an API server is reached. */
export interface ApiAccess {
  /** `https://10.0.0.1:6443`, without path and slash at its end. */
  readonly server: string;
  /** The name its certificate must have; undefined: that of `server`. */
  readonly serverName: string | undefined;
  /** PEM. Undefined: the authorities that Node.js knows. */
  readonly authority: Material | undefined;
  readonly identity: ApiIdentity;
}

export type KubeconfigReading =
  | { readonly ok: true; readonly access: ApiAccess }
  | { readonly ok: false; readonly problems: readonly Problem[] };

const SERVER_RIGHT = 'the address of an API server such as https://10.0.0.1:6443';
const REFUSED_IDENTITIES = {
  exec: 'programs that make credentials are not run by a node agent; use a client certificate or a token file',
  'auth-provider': 'auth providers were taken out of Kubernetes; use a client certificate or a token file',
  username: 'API servers take no passwords any more; use a client certificate or a token file',
} as const;

/**
 * `value` is the parsed file, `directory` the one it lies in: paths in it are relative to that. Of the contexts only
 * the current one counts. Each problem names its field; no value of a credential is in any.
 */
export function readKubeconfig(value: unknown, directory: AbsolutePath): KubeconfigReading {
  const problems: Problem[] = [];
  const reader = new FieldReader(value, '', problems);
  const currentContext = reader
    .key('current-context')
    .requiredText((text) => text !== '', 'the name of one of the contexts');
  const context = named(reader, 'contexts', currentContext, 'context', 'current-context');
  const clusterName =
    context?.key('cluster').requiredText((text) => text !== '', 'the name of a cluster') ?? '';
  const userName = context?.key('user').requiredText((text) => text !== '', 'the name of a user') ?? '';
  const cluster = named(reader, 'clusters', clusterName, 'cluster', 'the context');
  const user = named(reader, 'users', userName, 'user', 'the context');
  const files = { directory };
  const access = {
    server: cluster === undefined ? '' : readServer(cluster),
    serverName: cluster?.key('tls-server-name').text() || undefined,
    authority: cluster === undefined ? undefined : readMaterial(cluster, 'certificate-authority', files),
    identity: user === undefined ? undefined : readIdentity(user, files),
  };
  const { identity } = access;
  return problems.length === 0 && identity !== undefined
    ? { ok: true, access: { ...access, identity } }
    : { ok: false, problems };
}

/** The entry of that name in a list of {name, <what>}. Without a name whoever named none has a problem already. */
function named(
  reader: FieldReader,
  list: string,
  name: string,
  what: string,
  whose: string,
): FieldReader | undefined {
  if (name === '') return undefined;
  const entries = reader.key(list).list();
  const found = entries.find((one) => one.key('name').text() === name);
  if (found === undefined) {
    const known = entries.map((one) => one.key('name').text() ?? '').filter((one) => one !== '');
    const others = known.length === 0 ? 'it has none' : `it has ${known.slice(0, 8).map(quoted).join(', ')}`;
    reader.key(list).refuse(`has no ${what} ${quoted(name)}, which ${whose} names; ${others}`);
    return undefined;
  }
  const entry = found.key(what);
  if (!entry.present) entry.refuse(`is missing; expected what belongs to ${quoted(name)}`);
  return entry;
}

function readServer(cluster: FieldReader): string {
  const insecure = cluster.key('insecure-skip-tls-verify');
  if (insecure.flag(false))
    insecure.refuse(
      'an API server that nobody has proven is not believed; give certificate-authority-data instead',
    );
  const proxy = cluster.key('proxy-url');
  if (proxy.text())
    proxy.refuse('a proxy is not supported; expected a server that this machine reaches itself');
  const text = cluster.key('server').requiredText((one) => originOf(one) !== undefined, SERVER_RIGHT);
  return originOf(text) ?? '';
}

function originOf(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const { protocol, pathname, search, hash, username, host } = new URL(text);
  const isPlain = protocol === 'https:' && search === '' && hash === '' && username === '' && host !== '';
  return isPlain && pathname === '/' ? `https://${host}` : undefined;
}

interface Files {
  readonly directory: AbsolutePath;
}

/** `<field>-data` wins over `<field>`, as in client-go. */
function readMaterial(reader: FieldReader, field: string, files: Files): Material | undefined {
  const data = reader.key(`${field}-data`).hide();
  if (!data.present) return readFile(reader.key(field), files);
  const text = data.text() ?? '';
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length === 0 || bytes.toString('base64').replace(/=+$/, '') !== text.replace(/\s|=+$/g, ''))
    data.refuse('expected PEM in base64');
  return { kind: 'bytes', bytes: new Sensitive(bytes) };
}

function readFile(reader: FieldReader, { directory }: Files): Material | undefined {
  if (!reader.present) return undefined;
  const absolute = (text: string): AbsolutePath | undefined =>
    text === '' ? undefined : parseAbsolutePath(text.startsWith('/') ? text : `${directory}/${text}`);
  const text = reader.requiredText((one) => absolute(one) !== undefined, 'a path without "." or ".."');
  const path = absolute(text);
  return path === undefined ? undefined : { kind: 'file', path };
}

function readIdentity(user: FieldReader, files: Files): ApiIdentity | undefined {
  for (const [field, advice] of Object.entries(REFUSED_IDENTITIES))
    if (user.key(field).present) user.key(field).refuse(advice);
  const certificate = readMaterial(user, 'client-certificate', files);
  const key = readMaterial(user, 'client-key', files);
  if (certificate !== undefined && key !== undefined) return { kind: 'certificate', certificate, key };
  if (certificate !== undefined || key !== undefined) {
    const lacking = certificate === undefined ? 'client-certificate' : 'client-key';
    user.key(lacking).refuse('is missing; a certificate and its key belong together');
    return undefined;
  }
  // The file wins, as in client-go.
  const tokenFile = readFile(user.key('tokenFile'), files);
  if (tokenFile !== undefined) return { kind: 'token', token: tokenFile };
  const token = user.key('token').hide();
  const text = token.text((one) => one !== '' && /^[\x21-\x7e]+$/.test(one), 'a token without spaces');
  if (text !== undefined)
    return { kind: 'token', token: { kind: 'bytes', bytes: new Sensitive(Buffer.from(text)) } };
  if (!token.present)
    user.refuse('has no credentials; expected client-certificate and client-key, or tokenFile, or token');
  return undefined;
}
