/**
 * VolumeAttachments as an API server has them, each with a uid of its own: deleted and made anew under the same name
 * they are others, and what was staged under the old one may be another disk by now.
 */
import { type AttachmentWord, attachmentObject, type Disk } from './manifests.ts';
import type { Random } from './random.ts';
import type { Trace } from './trace.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface SimAttachmentsParts {
  readonly random: Random;
  readonly time: VirtualTime;
  readonly trace: Trace;
  /** The file is to be written again. */
  readonly onChange: () => void;
}

/** The words on one disk, mostly one; each by its name. */
type Words = ReadonlyMap<string, AttachmentWord>;

export class SimAttachments {
  readonly #parts: SimAttachmentsParts;
  readonly #words = new Map<Disk, Words>();
  #uids = 0;

  constructor(parts: SimAttachmentsParts) {
    this.#parts = parts;
  }

  objects(): object[] {
    return [...this.#words.values()].flatMap((words) =>
      [...words].map(([name, word]) => attachmentObject(word, name)),
    );
  }

  /** The first time it is attached; afterwards it becomes another attachment, in one of the ways that this happens. */
  replace(disk: Disk): void {
    const { random } = this.#parts;
    const before = this.#words.get(disk);
    const next = this.#attached(disk);
    if (before === undefined || before.size === 0) return this.#set(disk, next, 'is attached');
    const later = () => random.between(200, 40_000);
    switch (random.pick(['anew', 'anew', 'gone', 'detached', 'back', 'beside', 'nameless'] as const)) {
      case 'anew':
        return this.#set(disk, next, 'has another attachment');
      case 'gone':
        this.#set(disk, new Map(), 'has no attachment');
        return this.#after(disk, later(), next, 'has another attachment');
      case 'detached':
        this.#set(disk, withStatus(next, false), 'has another attachment that is not attached');
        return this.#after(disk, later(), next, 'is attached again');
      case 'back':
        this.#set(disk, next, 'has another attachment');
        return this.#after(disk, later(), before, 'has the attachment of before');
      case 'beside':
        this.#set(disk, new Map([...before, ...renamed(next)]), 'has a second attachment');
        return this.#after(disk, later(), renamed(next), 'has only the second attachment');
      case 'nameless':
        this.#set(disk, withoutUid(next), 'has an attachment without a uid');
        return this.#after(disk, later(), next, 'has another attachment');
    }
  }

  /** All that is said is that what there is is attached. */
  heal(): void {
    for (const [disk, words] of this.#words) this.#words.set(disk, withStatus(words, true));
  }

  #attached(disk: Disk): Words {
    this.#uids += 1;
    const word = { disk, attached: true, going: false, uid: `attachment-${this.#uids}` };
    return new Map([[`${disk.specName}-attached`, word]]);
  }

  #set(disk: Disk, words: Words, what: string): void {
    this.#words.set(disk, words);
    const uids = [...words.values()].map(({ uid }) => uid ?? 'none');
    this.#parts.trace.add(`a controller: ${disk.specName} ${what} (${uids.join(' ')})`);
    this.#parts.onChange();
  }

  #after(disk: Disk, delayMs: number, words: Words, what: string): void {
    const now = this.#words.get(disk);
    this.#parts.time.after(delayMs, () => {
      if (this.#words.get(disk) === now) this.#set(disk, words, what);
    });
  }
}

function changed(words: Words, change: (word: AttachmentWord) => AttachmentWord): Words {
  return new Map([...words].map(([name, word]) => [name, change(word)]));
}

function withStatus(words: Words, attached: boolean): Words {
  return changed(words, (word) => ({ ...word, attached }));
}

function withoutUid(words: Words): Words {
  return changed(words, (word) => ({ ...word, uid: undefined }));
}

function renamed(words: Words): Words {
  return new Map([...words].map(([name, word]) => [`${name}-too`, word]));
}
