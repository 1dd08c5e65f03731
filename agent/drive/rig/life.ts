/**
 * The life of the volumes of one duty: made, attached, staged, published, and whatever happens taken down again. Every
 * call that may have had an effect is remembered, answered or not.
 */
import { dirname, join } from 'node:path';
import type {
  CreateVolumeResponse,
  NodePublishVolumeResponse,
  NodeStageVolumeResponse,
  NodeUnpublishVolumeResponse,
  NodeUnstageVolumeResponse,
  VolumeCapability,
  VolumeCapability_AccessMode_Mode as Mode,
} from '../../../plugins/csi/wire/generated/csi.ts';
import { type Answer, answerText } from './driver-client.ts';
import {
  backingFileOf,
  deviceOf,
  forceUnmount,
  makeDirectory,
  mountsBelow,
  namesIn,
  pause,
} from './machine.ts';
import { type AccessKind, attachesOf, capabilityOf, createsOf, isDoubt, type Rig, stagesOf } from './rig.ts';
import type { BeginningCall } from '../oracle/oracle-history.ts';
import type { Notes } from '../oracle/verdict.ts';
import type { Publication, TestVolume } from './test-volume.ts';
import { type OtherStage, VolumeCalls } from './volume-calls.ts';

const STAGING = 'staging';
const POD_PREFIX = 'pod-';
const TEARDOWN_TRIES_MAX = 5;
const TEARDOWN_PAUSE_MS = 200;

export class Life {
  readonly rig: Rig;
  /** The directory that this duty has to itself. */
  readonly directory: string;
  readonly #calls: VolumeCalls;
  readonly #volumes = new Set<TestVolume>();
  readonly #attached = new Set<TestVolume>();
  readonly #staged = new Map<string, { volume: TestVolume; path: string }>();
  readonly #published = new Map<string, { volume: TestVolume; target: string }>();
  #targets = 0;

  constructor(rig: Rig, directory: string) {
    this.rig = rig;
    this.#calls = new VolumeCalls(rig);
    this.directory = directory;
  }

  /** A volume of the driver, attached to this node where the driver does that; notes `blocked` when there is none. */
  async volume(notes: Notes, kind: AccessKind = 'mount', mode?: Mode): Promise<TestVolume | undefined> {
    const volume = await this.#obtain(notes, capabilityOf(this.rig, kind, mode), kind);
    if (volume === undefined || !attachesOf(this.rig)) return volume;
    const attached = await patiently(() => this.attach(volume));
    if (attached.ok) return volume;
    notes.blocked(`ControllerPublishVolume: ${answerText(attached)}`);
    return undefined;
  }

  /** A volume that the caller attaches itself, or has attached. */
  made(notes: Notes): Promise<TestVolume | undefined> {
    return this.#obtain(notes, capabilityOf(this.rig, 'mount'), 'mount');
  }

  async #obtain(
    notes: Notes,
    capability: VolumeCapability,
    kind: AccessKind,
  ): Promise<TestVolume | undefined> {
    const { options } = this.rig;
    const staging = stagesOf(this.rig) ? join(this.directory, STAGING) : '';
    if (staging !== '') await makeDirectory(staging);
    const base = { kind, capability, publishContext: {}, staging };
    if (!createsOf(this.rig)) {
      // A block volume is overwritten, so it is the last one, which nothing else is tried on.
      const id = options.volumeHandles.at(kind === 'block' ? -1 : 0);
      if (id === undefined) {
        notes.blocked(
          'the driver cannot create volumes (CREATE_DELETE_VOLUME): name one with --volume-handle',
        );
        return undefined;
      }
      const given: TestVolume = {
        ...base,
        id,
        name: undefined,
        context: options.attributes,
        capacityBytes: 0n,
      };
      this.#volumes.add(given);
      return given;
    }
    const name = `mooring-drive-${this.rig.runId}-${this.directory.slice(this.directory.lastIndexOf('/') + 1)}-${
      this.#volumes.size
    }`;
    const created = await patiently(() => this.create(name, capability));
    const volume = created.ok ? created.reply.volume : undefined;
    if (volume === undefined || volume.volumeId === '') {
      notes.blocked(`CreateVolume: ${created.ok ? 'OK without a volume' : answerText(created)}`);
      return undefined;
    }
    const { volumeId: id, volumeContext: context, capacityBytes } = volume;
    const made: TestVolume = { ...base, id, name, context, capacityBytes };
    this.#volumes.add(made);
    return made;
  }

  create(name: string, capability: VolumeCapability): Promise<Answer<CreateVolumeResponse>> {
    return this.#calls.create(name, capability);
  }

  /** Deletes a volume that was made on the way and is used for nothing. */
  async forget(volumeId: string): Promise<void> {
    const answer = await patiently(() => this.#calls.delete(volumeId));
    if (!answer.ok) this.rig.leftovers.push(`volume ${volumeId}: ${answerText(answer)}`);
  }

  async attach(volume: TestVolume): Promise<Answer<unknown>> {
    this.#attached.add(volume);
    const answer = await this.#calls.attach(volume);
    if (answer.ok) volume.publishContext = answer.reply.publishContext;
    return answer;
  }

  async detach(volume: TestVolume): Promise<Answer<unknown>> {
    const answer = await this.#calls.detach(volume);
    if (answer.ok) this.#attached.delete(volume);
    return answer;
  }

  async stage(volume: TestVolume, other: OtherStage = {}): Promise<Answer<NodeStageVolumeResponse>> {
    const path = other.path ?? volume.staging;
    this.#staged.set(path, { volume, path });
    const answer = await this.#calls.stage(volume, { ...other, path });
    if (answer.ok) await this.#noteDevices();
    return answer;
  }

  async unstage(volume: TestVolume, path = volume.staging): Promise<Answer<NodeUnstageVolumeResponse>> {
    const answer = await this.#calls.unstage(volume, path);
    if (answer.ok) this.#staged.delete(path);
    return answer;
  }

  async publish(volume: TestVolume, to: Publication): Promise<Answer<NodePublishVolumeResponse>> {
    this.#published.set(to.target, { volume, target: to.target });
    const answer = await this.#calls.publish(volume, to);
    if (answer.ok) await this.#noteDevices(to.target);
    return answer;
  }

  async unpublish(volume: TestVolume, target: string): Promise<Answer<NodeUnpublishVolumeResponse>> {
    const answer = await this.#calls.unpublish(volume, target);
    if (answer.ok) this.#published.delete(target);
    return answer;
  }

  /** Every target of this duty, whatever the driver says to it. */
  async unpublishAll(): Promise<void> {
    for (const { volume, target } of [...this.#published.values()]) await this.unpublish(volume, target);
  }

  /** A place for one more publication: its parent is there, itself it is not. */
  async newTarget(): Promise<string> {
    this.#targets += 1;
    const target = join(this.directory, `${POD_PREFIX}${this.#targets}`, 'mount');
    await makeDirectory(dirname(target));
    return target;
  }

  /** A volume up to its stage; `blocked` when that does not work. */
  async staged(notes: Notes, kind: AccessKind = 'mount', mode?: Mode): Promise<TestVolume | undefined> {
    const volume = await this.volume(notes, kind, mode);
    if (volume === undefined || !stagesOf(this.rig)) return volume;
    const staged = await patiently(() => this.stage(volume));
    if (staged.ok) return volume;
    notes.blocked(`NodeStageVolume: ${answerText(staged)}`);
    return undefined;
  }

  /** A volume up to one publication; `blocked` when that does not work. */
  async published(
    notes: Notes,
    kind: AccessKind = 'mount',
    mode?: Mode,
  ): Promise<{ readonly volume: TestVolume; readonly target: string } | undefined> {
    const volume = await this.staged(notes, kind, mode);
    if (volume === undefined) return undefined;
    const target = await this.newTarget();
    const published = await patiently(() => this.publish(volume, { target }));
    if (published.ok) return { volume, target };
    notes.blocked(`NodePublishVolume: ${answerText(published)}`);
    return undefined;
  }

  /** What somebody else asks of the driver for a volume of this life: it is taken down with the rest. */
  noteCall(volume: TestVolume, { method, request }: Pick<BeginningCall, 'method' | 'request'>): void {
    const { stagingTargetPath: path, targetPath: target } = request;
    if (method === 'ControllerPublishVolume') this.#attached.add(volume);
    if (method === 'NodeStageVolume' && path !== undefined) this.#staged.set(path, { volume, path });
    if (method === 'NodePublishVolume' && target !== undefined)
      this.#published.set(target, { volume, target });
  }

  /** Whoever called has taken all of it down. */
  forgetCalls(): void {
    for (const calls of [this.#attached, this.#staged, this.#published]) calls.clear();
  }

  /** Everything down, in order, with some patience. What is left although the driver said OK goes to the rig. */
  async takeDown(duty: string): Promise<void> {
    const refused: string[] = [];
    const tear = async (what: string, call: () => Promise<Answer<unknown>>): Promise<void> => {
      const answer = await patiently(call);
      // Gone already is as good as gone.
      if (!answer.ok && answer.code !== NOT_FOUND) refused.push(`${what}: ${answerText(answer)}`);
    };
    for (const { volume, target } of [...this.#published.values()])
      await tear('NodeUnpublishVolume', () => this.unpublish(volume, target));
    for (const { volume, path } of [...this.#staged.values()])
      await tear('NodeUnstageVolume', () => this.unstage(volume, path));
    for (const volume of [...this.#attached])
      await tear('ControllerUnpublishVolume', () => this.detach(volume));
    const mounts = (await mountsBelow(this.directory)).map(({ target }) => target);
    this.rig.leftovers.push(...mounts.map((target) => `${duty}: still mounted at ${this.#relative(target)}`));
    await forceUnmount(mounts);
    for (const volume of this.#volumes) {
      if (volume.name === undefined) continue;
      await tear('DeleteVolume', () => this.#calls.delete(volume.id));
    }
    this.rig.leftovers.push(...refused.map((one) => `${duty}: ${one}`));
    await this.#noteFiles(duty);
  }

  /** The target is the driver's to remove; the staging directory and what is in it must be empty. */
  async #noteFiles(duty: string): Promise<void> {
    for (const name of await namesIn(this.directory)) {
      if (name !== STAGING && !name.startsWith(POD_PREFIX)) continue;
      const inside = await namesIn(join(this.directory, name));
      for (const one of inside) this.rig.leftovers.push(`${duty}: ${name}/${one} is left`);
    }
  }

  async #noteDevices(target?: string): Promise<void> {
    const devices = (await mountsBelow(this.directory)).map(({ device }) => device);
    const node = target === undefined ? undefined : await deviceOf(target);
    for (const device of [...devices, ...(node === undefined ? [] : [node])]) {
      const file = await backingFileOf(device);
      if (file !== undefined && this.rig.options.volumeHandles.length === 0) this.rig.backingFiles.add(file);
    }
  }

  #relative(path: string): string {
    return path.startsWith(`${this.directory}/`) ? path.slice(this.directory.length + 1) : path;
  }
}

const NOT_FOUND = 5;

/** The same call until it is answered for good, or often enough. */
export async function patiently<Reply>(call: () => Promise<Answer<Reply>>): Promise<Answer<Reply>> {
  for (let tries = 1; ; tries += 1) {
    const answer = await call();
    if (!isDoubt(answer) || tries >= TEARDOWN_TRIES_MAX) return answer;
    await pause(TEARDOWN_PAUSE_MS * tries);
  }
}
