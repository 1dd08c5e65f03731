/**
 * Which sessions the agent has begun, or was about to: written down before each login, so that after a crash they are
 * known, and those that somebody else has made are never ended.
 */
import { createTurns } from '../../mount/process/turns.ts';
import { done, ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, below, type Host } from '../../mount/host.ts';
import { type IscsiWay, isSameWay } from '../../mount/block-devices.ts';
import { nameBegun } from '../../mount/temporary-file.ts';
import { type Layout, sha256Hex } from '../layout/layout.ts';
import { inOrder } from '../steps.ts';

export interface SessionNote extends IscsiWay {
  /** A session is of one boot. */
  readonly bootId: string;
  /** The session's own, which the kernel gives once in a boot; undefined: the login had not answered yet. */
  readonly number?: number;
}

const NOTES_MAX = 10_000;
const NOTE_BYTES_MAX = 4_096;
const DIRECTORY_MODE = 0o750;
const FILE_MODE = 0o640;
const VERSION = 1;
const ALL = 'notes';

export class SessionNotes {
  readonly #host: Host;
  readonly #layout: Layout;
  /** Half of a note is one that nobody writes at that moment. */
  readonly #inTurn = createTurns();

  constructor(host: Host, layout: Layout) {
    this.#host = host;
    this.#layout = layout;
  }

  /** Durable when it settles. `number`: what the login has made. */
  write({ iqn, portal, iface }: IscsiWay, number?: number): Promise<Result<void>> {
    const host = this.#host;
    const text = JSON.stringify({ version: VERSION, bootId: host.bootId, iqn, portal, iface, number });
    const path = this.#pathOf({ iqn, portal, iface });
    return this.#inTurn(ALL, () =>
      inOrder(
        () => host.makeDirectory(this.#layout.sessionNotes, DIRECTORY_MODE),
        () => host.writeFile(path, new TextEncoder().encode(text), { mode: FILE_MODE, durable: true }),
      ),
    );
  }

  /** Those of one target. What a crash has left of a note goes. */
  readOf(iqn: string): Promise<Result<readonly SessionNote[]>> {
    return this.#inTurn(ALL, async () => {
      const directory = this.#layout.sessionNotes;
      const limits = { entriesMax: NOTES_MAX, fileBytesMax: NOTE_BYTES_MAX };
      const files = await this.#host.readDirectoryFiles(directory, limits);
      if (!files.ok) return files.failure.code === 'path-missing' ? ok([]) : files;
      const notes: SessionNote[] = [];
      for (const { name, content } of files.value) {
        if (nameBegun(name) !== undefined) {
          const removed = await this.#host.removeFile(below(directory, name));
          if (!removed.ok) return removed;
        } else if (content?.ok === false) return content;
        const note = content?.ok === true ? parseNote(content.value) : undefined;
        if (note?.iqn === iqn) notes.push(note);
      }
      return ok(notes);
    });
  }

  async find(way: IscsiWay): Promise<Result<SessionNote | undefined>> {
    const notes = await this.readOf(way.iqn);
    return notes.ok ? ok(notes.value.find((one) => isSameWay(one, way))) : notes;
  }

  /**
   * Nothing comes any more of the login: a session that is there now is of somebody else, and he may use it; or an
   * `earlier` login that was lost has begun it. The record of that one, which may hold a password, has nobody else.
   */
  async giveUp(way: IscsiWay, earlier: SessionNote | undefined): Promise<Result<void>> {
    if (earlier === undefined) return this.remove(way);
    const sessions = await this.#host.readIscsiSessions();
    if (!sessions.ok) return sessions;
    const isThere = sessions.value.some((one) => isSameWay(one, way));
    const isBegun = earlier.bootId === this.#host.bootId && earlier.number === undefined;
    if (isThere) return isBegun ? done : this.remove(way);
    return inOrder(
      () => this.#host.logOutOfIscsi(way),
      () => this.remove(way),
    );
  }

  remove(way: IscsiWay): Promise<Result<void>> {
    return this.#inTurn(ALL, async () => {
      const removed = await this.#host.removeFile(this.#pathOf(way));
      return removed.ok ? done : removed;
    });
  }

  #pathOf({ iqn, portal, iface }: IscsiWay): AbsolutePath {
    return this.#layout.sessionNote(sha256Hex(`${iface} ${portal} ${iqn}`));
  }
}

/** Undefined: a text that no agent has written. */
function parseNote(content: Uint8Array): SessionNote | undefined {
  try {
    const { version, bootId, iqn, portal, iface, number } = JSON.parse(
      Buffer.from(content).toString(),
    ) as Partial<SessionNote & { readonly version: number }>;
    const isNote = [bootId, iqn, portal, iface].every((one) => typeof one === 'string');
    if (version !== VERSION || !isNote) return undefined;
    return { bootId, iqn, portal, iface, ...(Number.isInteger(number) && { number }) } as SessionNote;
  } catch {
    return undefined;
  }
}
