/**
 * Under which attachment each volume was set up, and whether that is still the one of the wish (FN-01): what stands
 * under another may be another disk, and no pod is given it.
 */
import type { AgentView } from '../../agent/node/agent-view.ts';
import { ON_ITS_WAY_MS } from './late-plan.ts';
import { NODE_NAME } from './manifests.ts';

type Uids = ReadonlySet<string>;

interface Said {
  readonly uids: Uids;
  readonly sinceMs: number;
}

const NONE: Uids = new Set();

export class AttachmentWatch {
  readonly #violate: (invariant: string, text: string) => void;
  /** By PersistentVolume, in the wish of the agent that lives. */
  readonly #said = new Map<string, Said>();
  /** By handle, while anything of it stands. */
  readonly #climbedUnder = new Map<string, Uids>();
  #wish: unknown;

  constructor(violate: (invariant: string, text: string) => void) {
    this.#violate = violate;
  }

  /** After every event. */
  look(view: AgentView | undefined, nowMs: number): void {
    const attachments = view?.desiredObjects.attachments;
    if (attachments === this.#wish) return;
    this.#wish = attachments;
    const now = new Map<string, Set<string>>();
    for (const { nodeName, volumeName, uid } of attachments?.values() ?? []) {
      if (nodeName !== NODE_NAME || uid === undefined) continue;
      now.set(volumeName, (now.get(volumeName) ?? new Set()).add(uid));
    }
    for (const name of new Set([...now.keys(), ...this.#said.keys()])) {
      const uids = now.get(name) ?? NONE;
      if (!isSame(uids, this.#said.get(name)?.uids ?? NONE)) this.#said.set(name, { uids, sinceMs: nowMs });
    }
  }

  /** A living agent stages or publishes it. */
  judge(call: string, handle: string, volumeName: string, wasDown: boolean, nowMs: number): void {
    const said = this.#said.get(volumeName);
    if (wasDown) {
      this.#climbedUnder.set(handle, said?.uids ?? NONE);
      return;
    }
    const under = this.#climbedUnder.get(handle) ?? NONE;
    if (said === undefined || said.uids.size === 0 || under.size === 0) return;
    const isOther = [...said.uids].every((uid) => !under.has(uid));
    if (isOther && nowMs > said.sinceMs + ON_ITS_WAY_MS)
      this.#violate(
        'FN-01',
        `${call} of ${handle}, set up under ${[...under].join()}, and its attachment is ${[...said.uids].join()}`,
      );
  }

  /** An operator has said that it is clean. */
  forget(handle: string): void {
    this.#climbedUnder.delete(handle);
  }

  forgetAll(): void {
    this.#climbedUnder.clear();
  }
}

function isSame(a: Uids, b: Uids): boolean {
  return a.size === b.size && [...a].every((one) => b.has(one));
}
