/**
 * The cluster that the simulated machine is a node of: its API server, its attach/detach controller, whoever ends the
 * containers of its pods, and what goes wrong there.
 */
import type { ApiTransport } from '../../../kubernetes/api/api-transport.ts';
import { NODE_NAME } from '../manifests.ts';
import type { Random } from '../random.ts';
import type { Trace } from '../trace.ts';
import type { VirtualTime } from '../virtual-time.ts';
import { type ApiFaults, NO_API_FAULTS } from './api-faults.ts';
import type { ApiTarget } from './api-path.ts';
import { ApiServer, type Verb } from './api-server.ts';
import { AttachController } from './attach-controller.ts';
import { ClaimController } from './claim-controller.ts';
import { ClusterFiles } from './cluster-files.ts';
import {
  ACCOUNTS,
  ATTACHMENTS,
  ClusterObjectsView,
  collectionOf,
  isOver,
  NODES,
  PODS,
  type WantedVolume,
} from './cluster-objects.ts';
import type { ClusterPlan } from './cluster-plan.ts';
import { at, type Json, metadataOf, nameOf, uidOf } from './json-object.ts';
import { BY_GRAPH, forbidden, NO_PATH } from './node-rights.ts';
import { NodeTroubles } from './node-troubles.ts';
import { ObjectStore } from './object-store.ts';
import { Resizer } from './resizer.ts';
import { createSimTransport } from './sim-transport.ts';
import { TokenIssuer } from './token-issuer.ts';

export interface SimClusterParts {
  readonly plan: ClusterPlan;
  readonly random: Random;
  readonly claimsRandom: Random;
  readonly nodeRandom: Random;
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly stormy: () => boolean;
  /** The agent dies now. */
  readonly kill: (why: string) => void;
  readonly attach: (volume: WantedVolume) => Readonly<Record<string, string>>;
  /** The storage shows it elsewhere; the answer: what a driver is told of it now. Undefined: it is not attached. */
  readonly move: (volume: WantedVolume) => Readonly<Record<string, string>> | undefined;
  readonly detach: (volume: WantedVolume, isByHand: boolean) => void;
  readonly growsOnNode: (driver: string) => boolean;
  /** Each answer that an agent has heard. */
  readonly onAnswer: (isGood: boolean) => void;
  /** An agent was told all pods that there are, for the first time or again. */
  readonly onPods: (told: PodsTold) => void;
}

/** Pods of this node by their uids. */
interface PodsTold {
  /** Those whose volumes may not be touched: their containers may run. */
  readonly kept: ReadonlySet<string>;
  readonly shown: ReadonlySet<string>;
}

interface PodList {
  readonly metadata: { readonly resourceVersion: string };
  readonly items: readonly Json[];
}

const LATE_GOODBYE_MS_MAX = 20_000;
const OUTAGE_MS_MAX = 60_000;
const HEALED_LAG_MS = 20;
const ACCOUNT = 'default';
/** Who asks once more after ten seconds is told the truth. */
const EMPTY_MS_MAX = 9_000;
const EMPTY_AGAIN_MS = 60_000;
const DENIED_MS_MAX = 40_000;
/** More versions than a seed makes, and room for more of these than it restores backups. */
const RESTORED_BY_VERSIONS = 1_000_000;
const RESTORED_FIRST_VERSION = 1_000 * RESTORED_BY_VERSIONS;

export class SimCluster {
  readonly store: ObjectStore;
  readonly server: ApiServer;
  readonly tokens: TokenIssuer;
  readonly files: ClusterFiles;
  readonly view: ClusterObjectsView;
  /** Volumes whose attachment was taken away by hand, under whatever stood; by unique name. */
  readonly disturbed = new Set<string>();
  readonly #parts: SimClusterParts;
  readonly #controller: AttachController;
  readonly #claims: ClaimController;
  readonly #nodeTroubles: NodeTroubles;
  #isAway = false;
  #hasHeardPods = false;
  #emptyUntilMs = Number.NEGATIVE_INFINITY;
  #deniedUntilMs = Number.NEGATIVE_INFINITY;
  #endLife: () => void = () => {};

  constructor(parts: SimClusterParts) {
    const { time, random, plan, trace } = parts;
    this.#parts = parts;
    const firstVersion = plan.restoredEveryMs > 0 ? RESTORED_FIRST_VERSION : undefined;
    this.store = new ObjectStore(() => time.nowMs(), firstVersion);
    this.view = new ClusterObjectsView(this.store);
    const faults = (): ApiFaults => this.#faults();
    this.tokens = new TokenIssuer({
      ...{ store: this.store, nowMs: () => time.nowMs() },
      lifeMsMax: () => (parts.stormy() ? plan.tokenLifeMsMax : Number.POSITIVE_INFINITY),
    });
    this.server = new ApiServer({
      ...{ store: this.store, time, random: random.fork(), faults, tokens: this.tokens },
      forbids: (verb, target) => this.#forbids(verb, target),
      hides: ({ resource }) => resource === 'pods' && time.nowMs() < this.#emptyUntilMs,
    });
    this.files = new ClusterFiles({
      store: this.store,
      onUnwanted: (pod, own) => this.#endPod(pod, own),
    });
    this.store.create(ACCOUNTS, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: ACCOUNT } });
    this.#nodeTroubles = new NodeTroubles({
      ...{ store: this.store, time, random: parts.nodeRandom, trace, nodeName: NODE_NAME, view: this.view },
      stormy: parts.stormy,
      deletedEveryMs: plan.nodeDeletedEveryMs,
      deadEveryMs: plan.nodeDeadEveryMs,
    });
    this.#controller = new AttachController({
      ...{ store: this.store, time, random: random.fork(), trace, nodeName: NODE_NAME, view: this.view },
      lagMsMax: () => (parts.stormy() ? plan.controllerLagMsMax : HEALED_LAG_MS),
      attachMsMax: () => (parts.stormy() ? plan.attachMsMax : HEALED_LAG_MS),
      attach: parts.attach,
      detach: (volume) => parts.detach(volume, this.disturbed.has(volume.unique)),
      isForced: () => this.#nodeTroubles.isTakenForDead,
      // Whether anybody has it in use nobody has said, or nobody was asked.
      onBlindDetach: (volume) => void this.disturbed.add(volume.unique),
    });
    this.#claims = new ClaimController({
      ...{ store: this.store, time, random: parts.claimsRandom, trace, view: this.view, files: this.files },
      lagMsMax: () => (parts.stormy() ? plan.controllerLagMsMax : HEALED_LAG_MS),
      stormy: parts.stormy,
      deletedEveryMs: plan.claimsDeletedEveryMs,
    });
    new Resizer({
      ...{ store: this.store, time, random: parts.claimsRandom.fork(), growsOnNode: parts.growsOnNode },
      hasStatuses: plan.resizerHasStatuses,
      lagMsMax: () => (parts.stormy() ? plan.controllerLagMsMax : HEALED_LAG_MS),
    });
    this.store.onChange(({ version, collection, before, after }) => {
      const verb = after === undefined ? 'gone' : before === undefined ? 'made' : 'changed';
      const status = JSON.stringify(at(after, 'status'));
      trace.add(`api ${version} ${collection} ${nameOf(after ?? before ?? {})} ${verb} ${status}`);
      if (collection === PODS && this.#hasHeardPods) parts.onPods(this.#podsTold());
    });
    this.#plan(plan.troubleEveryMs, () => this.#troubleServer());
    this.#plan(plan.attachmentTroubleEveryMs, () => this.#troubleAttachments());
    const contextsMs = plan.reach === 'watch' ? plan.contextChangesEveryMs : 0;
    this.#plan(contextsMs, () => this.#changeContext());
    this.#plan(plan.restoredEveryMs, () => this.#restoreBackup());
  }

  /** The way of one life of the agent to the server; the one before ends. */
  beginLife(isAlive: () => boolean): ApiTransport {
    const { time, random, plan, stormy, kill } = this.#parts;
    this.#endLife();
    this.#hasHeardPods = false;
    const transport = createSimTransport({
      ...{ server: this.server, time, random: random.fork(), isAlive },
      faults: () => this.#faults(),
      isAway: () => this.#isAway,
      onRequest: ({ method, path }, answer) => {
        if (answer !== undefined) this.#parts.onAnswer(answer.ok);
        if (answer?.ok === false) this.#parts.trace.add(`api ${method} ${path}: ${answer.failure.code}`);
        else if (method !== 'GET')
          this.#parts.trace.add(`api ${method} ${path} ${answer === undefined ? '' : 'ok'}`);
        if (path.startsWith('/api/v1/pods?') && answer?.ok === true) {
          this.#hasHeardPods = true;
          this.#parts.onPods(this.#podsTold(answer.value as PodList));
        }
        if (method === 'GET' || !stormy() || !random.chance(plan.crashAtWrite)) return;
        kill(`killed ${answer === undefined ? 'before' : 'after'} ${method} ${path}`);
      },
    });
    this.#endLife = () => transport.close();
    return transport;
  }

  /** Pods whose volumes may not be touched: they are there, and their containers may run. */
  keptUids(): ReadonlySet<string> {
    return new Set(
      this.view
        .podsHere()
        .filter((pod) => !isOver(pod))
        .map(uidOf),
    );
  }

  /** `answered`: a list that may be older than what is there when it comes. A watch tells what came since, and went. */
  #podsTold(answered?: PodList): PodsTold {
    const { items = [], metadata } = answered ?? {};
    const changes = metadata === undefined ? [] : this.store.since(Number(metadata.resourceVersion));
    const since = changes.flatMap(({ collection, after }) =>
      collection === PODS && after !== undefined ? [after] : [],
    );
    const shown = new Set([...this.view.podsHere(), ...items, ...since].map(uidOf));
    return { kept: this.keptUids(), shown };
  }

  isDetaching(unique: string): boolean {
    return this.#controller.isDetaching(unique);
  }

  node(): Json {
    return this.store.get(NODES, NODE_NAME) ?? {};
  }

  /** All answers come, and what was said goodbye to is gone. */
  heal(): void {
    if (this.#isAway) this.server.cutWatches();
    this.#isAway = false;
    this.#nodeTroubles.heal();
    this.server.catchUp();
    this.#controller.catchUp();
    this.#claims.heal();
    for (const pod of this.view.podsHere())
      if (metadataOf(pod)['deletionTimestamp'] !== undefined) this.store.remove(PODS, nameOf(pod));
  }

  #faults(): ApiFaults {
    const { plan, stormy } = this.#parts;
    if (stormy()) return plan.faults;
    const { pageObjectsMax } = plan.faults;
    return pageObjectsMax === undefined ? NO_API_FAULTS : { ...NO_API_FAULTS, pageObjectsMax };
  }

  #forbids(verb: Verb, target: ApiTarget): string | undefined {
    const isByGraph = BY_GRAPH.has(target.resource);
    if (isByGraph && this.#parts.stormy() && this.#parts.time.nowMs() < this.#deniedUntilMs) return NO_PATH;
    return forbidden({ verb, target, view: this.view, store: this.store, reach: this.#parts.plan.reach });
  }

  /** With its containers, or without asking whether they have ended. What is its own is collected later. */
  #endPod(pod: Json, own: readonly Json[]): void {
    const { random, plan, time, stormy } = this.#parts;
    const name = nameOf(pod);
    const collect = (): void => {
      for (const object of own)
        time.after(random.between(0, LATE_GOODBYE_MS_MAX), () => {
          const now = this.store.get(collectionOf(object), nameOf(object));
          const { uid } = metadataOf(object);
          // Another pod of that name may have made its own by now.
          if (now !== undefined && (uid === undefined || uid === uidOf(now)))
            this.store.remove(collectionOf(object), nameOf(object));
        });
    };
    const isThere = (): boolean => {
      const now = this.store.get(PODS, name);
      return now !== undefined && uidOf(now) === uidOf(pod);
    };
    const takeAway = (): void => {
      if (isThere()) this.store.remove(PODS, name);
      collect();
    };
    if (!stormy() || random.chance(plan.forced)) return takeAway();
    const there = this.store.get(PODS, name);
    if (there !== undefined) this.store.replace(PODS, this.store.deleted(there));
    time.after(random.between(1, LATE_GOODBYE_MS_MAX), () => {
      const now = this.store.get(PODS, name);
      if (now !== undefined && isThere()) this.store.replace(PODS, withEndedContainers(now));
      time.after(random.between(1, LATE_GOODBYE_MS_MAX), takeAway);
    });
  }

  #plan(everyMs: number, happen: () => void): void {
    const { time, random, stormy } = this.#parts;
    if (everyMs === 0) return;
    time.after(Math.ceil(-Math.log(1 - random.next()) * everyMs), () => {
      if (!stormy()) return;
      happen();
      this.#plan(everyMs, happen);
    });
  }

  #troubleServer(): void {
    const { random, time, trace } = this.#parts;
    const what = random.pick(['cut', 'end', 'compact', 'away', 'controller', 'empty', 'rights'] as const);
    trace.add(`the API server: ${what}`);
    switch (what) {
      case 'cut':
        return this.server.cutWatches(() => random.chance(0.7));
      case 'end':
        return this.server.endWatches();
      case 'compact':
        this.server.compact();
        return this.server.cutWatches(() => random.chance(0.7));
      case 'controller':
        return this.#controller.restart();
      case 'empty':
        return this.#emptyLists();
      case 'rights':
        // One that has started anew does not know yet what leads where.
        this.#deniedUntilMs = time.nowMs() + random.between(1_000, DENIED_MS_MAX);
        return this.server.cutWatches();
      case 'away':
        this.#isAway = true;
        this.server.cutWatches(() => random.chance(0.5));
        return void time.after(random.between(1_000, OUTAGE_MS_MAX), () => {
          this.#isAway = false;
          this.server.cutWatches();
        });
    }
  }

  /** With the server: whoever watched goes on from where he was, and is told nothing. */
  #restoreBackup(): void {
    this.#parts.trace.add('a backup is restored');
    this.store.setBack(RESTORED_BY_VERSIONS);
    this.server.cutWatches();
  }

  /** Watches have expired, and the lists that are read then are of no pods: as after a mistake, and not for long. */
  #emptyLists(): void {
    const { random, time } = this.#parts;
    if (time.nowMs() < this.#emptyUntilMs + EMPTY_AGAIN_MS) return;
    const spanMs = random.between(500, EMPTY_MS_MAX);
    this.#emptyUntilMs = time.nowMs() + spanMs;
    this.server.expireWatches();
    time.after(spanMs, () => {
      // Whoever has read such a list, and watches from there later on, has to read again, too.
      this.#touch();
      this.store.compact();
      this.server.expireWatches();
    });
  }

  /** One more version, of what nobody here reads. */
  #touch(): void {
    const account = this.store.get(ACCOUNTS, ACCOUNT);
    if (account === undefined) return;
    const annotations = { touched: `${this.store.version}` };
    this.store.replace(ACCOUNTS, { ...account, metadata: { ...metadataOf(account), annotations } });
  }

  /** What an attachment says of its volume is another, and it is the same attachment (D-116). */
  #changeContext(): void {
    const { random, trace, move } = this.#parts;
    const attached = this.store
      .list(ATTACHMENTS)
      .map(([, one]) => one)
      .filter((one) => at(one, 'status')['attached'] === true);
    if (attached.length === 0) return;
    const attachment = random.pick(attached);
    const volume = this.view.volumeOfAttachment(attachment);
    const attachmentMetadata = volume === undefined ? undefined : move(volume);
    if (attachmentMetadata === undefined) return;
    trace.add(`somebody: ${volume?.handle ?? ''}'s attachment says ${JSON.stringify(attachmentMetadata)}`);
    const status = { ...at(attachment, 'status'), attachmentMetadata };
    this.store.replace(ATTACHMENTS, { ...attachment, status });
  }

  /** Somebody deletes an attachment, or says that it is none. */
  #troubleAttachments(): void {
    const { random, trace } = this.#parts;
    const all = this.store.list(ATTACHMENTS).map(([, one]) => one);
    if (all.length === 0) return;
    const attachment = random.pick(all);
    const volume = this.view.volumeOfAttachment(attachment);
    if (volume === undefined) return;
    this.disturbed.add(volume.unique);
    const what = random.pick(['deleted', 'deleted', 'not attached'] as const);
    trace.add(`somebody: ${volume.handle}'s attachment is ${what}`);
    if (what === 'deleted') this.store.remove(ATTACHMENTS, volume.attachment);
    else
      this.store.replace(ATTACHMENTS, {
        ...attachment,
        status: { ...at(attachment, 'status'), attached: false },
      });
    this.#controller.attacherComes(volume.attachment);
  }
}

function withEndedContainers(pod: Json): Json {
  const { containers } = at(pod, 'spec');
  const names = Array.isArray(containers) ? containers.map((one) => at(one)['name']) : [];
  const containerStatuses = names.map((name) => ({ name, state: { terminated: { exitCode: 0 } } }));
  return { ...pod, status: { ...at(pod, 'status'), containerStatuses } };
}
