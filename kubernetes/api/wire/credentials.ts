/** The bytes of what proves who we are, read from its files again and again: they are exchanged while we run. */
import { open } from 'node:fs/promises';
import type { Clock } from '../../../mount/host.ts';
import { whyRevealed, whyUntrusted } from '../../../mount/process/file-owner.ts';
import { Sensitive } from '../../../plugins/secret/sensitive.ts';
import { apiFail, type ApiFailure, type ApiResult } from '../api-failure.ts';
import type { ApiAccess, ApiIdentity, Material } from '../kubeconfig.ts';

/** What one connection is opened with. */
export interface Credentials {
  readonly authority: Buffer | undefined;
  readonly certificate: Sensitive<{ readonly certificate: Buffer; readonly key: Buffer }> | undefined;
  readonly token: Sensitive<string> | undefined;
  /** Differs when a connection of the other credentials is another connection; a token is sent with each request. */
  readonly connection: string;
}

export interface CredentialReader {
  /**
   * At most so old as `FRESH_MS`, unless they cannot be read, in five seconds. `again`: the server does not take those
   * that are known. `unauthenticated` when there are none then, or others may have written them.
   */
  read(again?: boolean): Promise<ApiResult<Credentials>>;
}

const FRESH_MS = 60_000;
/** A file may be on a file system that does not answer. */
const READ_MS_MAX = 5_000;
const MODE_BITS = 0o7777;
const FILE_BYTES_MAX = 1_024 * 1_024;
/** What a header can carry, in one piece. */
const BEARER_TOKEN = /^[\x21-\x7e]+$/;

/** A file, and whether who reads it can be who we are. */
interface Source {
  readonly material: Material;
  readonly isSecret: boolean;
}

/**
 * The files are an operator's or a kubelet's, often behind symbolic links that are exchanged; so links are followed,
 * which nothing below the state root ever is. What a link leads to is judged: one that others can write is not believed
 * (`unauthenticated`, with the cure), of a secret one that others can read `warn` is told once (SE-38).
 */
export function createCredentialReader(
  access: ApiAccess,
  clock: Pick<Clock, 'nowMs' | 'timer'>,
  warn: (message: string) => void,
): CredentialReader {
  return new CredentialFiles(access, clock, warn);
}

/** `isDistrusted`: there is something to read that is not believed. */
type Read<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly failure: ApiFailure; readonly isDistrusted?: true };

/** The files that are being read now. */
interface Reading {
  readonly sinceMs: number;
  readonly end: Promise<Read<Credentials>>;
}

class CredentialFiles implements CredentialReader {
  readonly #access: ApiAccess;
  readonly #clock: Pick<Clock, 'nowMs' | 'timer'>;
  readonly #warn: (message: string) => void;
  readonly #warned = new Set<string>();
  #known: { readonly credentials: Credentials; readonly readMs: number } | undefined;
  #connections = 0;
  /** One for all who ask: a file that does not answer keeps a thread, and the process has four of them for files. */
  #reading: Reading | undefined;
  /** The file that it has come to. */
  #path: string | undefined;
  /** It was told that what is known could not be read again. */
  #isToldOf = false;

  constructor(access: ApiAccess, clock: Pick<Clock, 'nowMs' | 'timer'>, warn: (message: string) => void) {
    this.#access = access;
    this.#clock = clock;
    this.#warn = warn;
  }

  async read(again = false): Promise<ApiResult<Credentials>> {
    const nowMs = this.#clock.nowMs();
    if (!again && this.#known !== undefined && nowMs - this.#known.readMs < FRESH_MS)
      return { ok: true, value: this.#known.credentials };
    this.#reading ??= { sinceMs: nowMs, end: this.#begin(nowMs) };
    const read = await this.#inTime(this.#reading);
    if (read.ok) return read;
    const { failure, isDistrusted } = read;
    // As client-go with a token. Files are written anew in several steps, and disks fail.
    if (again || isDistrusted === true || this.#known === undefined) return { ok: false, failure };
    if (!this.#isToldOf) this.#warn(`${failure.message}; what was read before is used`);
    this.#isToldOf = true;
    return { ok: true, value: this.#known.credentials };
  }

  /** Whoever asks when it has been silent for too long already does not wait for it. */
  #inTime({ sinceMs, end }: Reading): Promise<Read<Credentials>> {
    const leftMs = sinceMs + READ_MS_MAX - this.#clock.nowMs();
    if (leftMs <= 0) return Promise.resolve(this.#silent());
    return new Promise((resolve) => {
      const cancel = this.#clock.timer(leftMs, () => resolve(this.#silent()));
      void end.then((read) => {
        cancel();
        resolve(read);
      });
    });
  }

  #silent(): ApiResult<never> {
    return apiFail('unauthenticated', `${this.#path} cannot be read: no answer in ${READ_MS_MAX} ms`);
  }

  async #begin(nowMs: number): Promise<Read<Credentials>> {
    const read = await this.#readFiles();
    this.#reading = undefined;
    if (!read.ok) return read;
    this.#known = { credentials: read.value, readMs: nowMs };
    this.#isToldOf = false;
    return read;
  }

  async #readFiles(): Promise<Read<Credentials>> {
    const { authority, identity } = this.#access;
    const contents: Buffer[] = [];
    for (const one of sourcesOf(this.#access)) {
      if (one.material.kind === 'file') this.#path = one.material.path;
      const content = await readMaterial(one, (path, message) => this.#warnOnce(path, message));
      if (!content.ok) return content;
      contents.push(content.value);
    }
    const own = contents.slice(authority === undefined ? 0 : 1);
    const [first = Buffer.alloc(0), second = Buffer.alloc(0)] = own;
    const isCertificate = identity.kind === 'certificate';
    const token = isCertificate ? undefined : first.toString('latin1').trim();
    if (token !== undefined && !BEARER_TOKEN.test(token)) return noToken(identity);
    const fresh = {
      authority: authority === undefined ? undefined : contents[0],
      certificate: isCertificate ? new Sensitive({ certificate: first, key: second }) : undefined,
      token: token === undefined ? undefined : new Sensitive(token),
    };
    const isSame = this.#known !== undefined && isSameConnection(this.#known.credentials, fresh);
    if (!isSame) this.#connections += 1;
    return { ok: true, value: { ...fresh, connection: `${this.#connections}` } };
  }

  #warnOnce(path: string, message: string): void {
    if (!this.#warned.has(path)) this.#warn(message);
    this.#warned.add(path);
  }
}

function sourcesOf({ authority, identity }: ApiAccess): readonly Source[] {
  const own: readonly Source[] =
    identity.kind === 'certificate'
      ? [
          { material: identity.certificate, isSecret: false },
          { material: identity.key, isSecret: true },
        ]
      : [{ material: identity.token, isSecret: true }];
  return authority === undefined ? own : [{ material: authority, isSecret: false }, ...own];
}

function noToken(identity: ApiIdentity): ApiResult<never> {
  const path = identity.kind === 'token' && identity.token.kind === 'file' ? identity.token.path : 'it';
  return apiFail('unauthenticated', `${path} holds no token: expected one line of printable ASCII`);
}

function isSameConnection(a: Omit<Credentials, 'connection'>, b: Omit<Credentials, 'connection'>): boolean {
  const bytes = ({ authority, certificate }: Omit<Credentials, 'connection'>): readonly Buffer[] => {
    const { certificate: own = Buffer.alloc(0), key = Buffer.alloc(0) } = certificate?.reveal() ?? {};
    return [authority ?? Buffer.alloc(0), own, key];
  };
  const others = bytes(b);
  return bytes(a).every((one, index) => one.equals(others[index] ?? Buffer.alloc(0)));
}

async function readMaterial(
  { material, isSecret }: Source,
  warn: (path: string, message: string) => void,
): Promise<Read<Buffer>> {
  if (material.kind === 'bytes') return { ok: true, value: Buffer.from(material.bytes.reveal()) };
  const { path } = material;
  try {
    const file = await open(path, 'r');
    try {
      const { mode, uid } = await file.stat();
      const facts = { mode: mode & MODE_BITS, uid };
      const untrusted = whyUntrusted(facts);
      if (untrusted !== undefined)
        return {
          ...apiFail('unauthenticated', `${path} is not believed: ${untrusted}`),
          isDistrusted: true,
        };
      const revealed = isSecret ? whyRevealed(facts) : undefined;
      if (revealed !== undefined) warn(path, `${path}: ${revealed}`);
      const { buffer, bytesRead } = await file.read(
        Buffer.alloc(FILE_BYTES_MAX + 1),
        0,
        FILE_BYTES_MAX + 1,
        0,
      );
      if (bytesRead > FILE_BYTES_MAX)
        return apiFail('unauthenticated', `${path} is longer than ${FILE_BYTES_MAX} bytes`);
      return { ok: true, value: Buffer.from(buffer.subarray(0, bytesRead)) };
    } finally {
      await file.close();
    }
  } catch (error) {
    const code =
      typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : 'unknown';
    return apiFail('unauthenticated', `${path} cannot be read: ${code}`);
  }
}
