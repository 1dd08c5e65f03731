/** Which directory of which NFS server, as people write it. A server is a word, and no option (CVE-2020-8555). */
import type { FieldReader } from './field-reader.ts';

/** `server`: a name or an address, one of IPv6 in brackets; `path`: absolute, without `..`. */
export interface NfsExport {
  readonly server: string;
  readonly path: string;
}

/** No host name has an underscore (RFC 1123), and resolvers know some that do; a dot at the end ends a search. */
const HOST_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?\.?$/;
const CONTROL = /\p{Cc}/u;
const PATH_BYTES_MAX = 1_024;

/** The word in brackets is an address of IPv6, as mount.nfs(8) wants it. */
export function readNfsExport(reader: FieldReader): NfsExport {
  const server = reader.key('server');
  const written = server.requiredText(
    (text) => serverOf(text) !== undefined,
    'the name or address of a server, no address that is valid on one link only',
  );
  const path = reader
    .key('path')
    .requiredText(
      (text) => pathOf(text) !== undefined,
      'an absolute path without ".." and control characters',
    );
  return { server: serverOf(written) ?? '', path: pathOf(path) ?? '/' };
}

/** A name or an address, of IPv6 in brackets; undefined: it is neither, or valid on one link only. */
export function serverOf(text: string): string | undefined {
  const server = text.includes(':') ? addressOf(text) : nameOf(text);
  return server === undefined || OF_ONE_LINK.test(server) ? undefined : server;
}

/** All digits and dots, and no address: names of hosts have a letter (RFC 1123). */
function nameOf(text: string): string | undefined {
  return HOST_NAME.test(text) && (IPV4.test(text) || /[A-Za-z]/.test(text)) ? text : undefined;
}

/** One of IPv6, in brackets, in its shortest form. */
function addressOf(text: string): string | undefined {
  const bare = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text;
  const url = /^[0-9A-Fa-f:.]+$/.test(bare) ? `http://[${bare}]/` : '';
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}

/** There the metadata of clouds are asked for; no server of files is. */
const OF_ONE_LINK = /^(?:169\.254\.|\[fe[89ab][0-9a-f]:|\[::ffff:a9fe:)/;
const OCTET = '(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])';
const IPV4 = new RegExp(`^(?:${OCTET}\\.){3}${OCTET}$`);

/** `/data/` and `/data//x` are one with `/data` and `/data/x`: so the kernel shows them. */
function pathOf(text: string): string | undefined {
  if (!text.startsWith('/') || CONTROL.test(text) || Buffer.byteLength(text) > PATH_BYTES_MAX)
    return undefined;
  const components = text.split('/').filter((one) => one !== '' && one !== '.');
  return components.includes('..') ? undefined : `/${components.join('/')}`;
}
