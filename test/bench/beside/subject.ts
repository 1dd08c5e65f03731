/** What is measured in turn: Mooring, and the kubelet's volume manager. Both have the kubelet's layout below a root. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { mountsBelow } from '../../demo/machine.ts';
import type { BenchPod } from '../pods.ts';

export type SubjectName = 'mooring' | 'kubelet';

/** Milliseconds from the beginning of the subject's clock, by name of the pod. */
export interface Told {
  /** When the subject itself knew that all volumes of the pod were mounted. */
  readonly book: ReadonlyMap<string, number>;
  /** When whoever starts containers learned it. */
  readonly gate: ReadonlyMap<string, number>;
}

export interface Subject {
  readonly name: SubjectName;
  /** The root of its state. */
  readonly root: string;
  pid(): number;
  /** Settles when both have told of every pod. Without `gate` Mooring's is not asked, and has told of none. */
  up(pods: readonly BenchPod[], gate: boolean): Promise<Told>;
  /** Milliseconds until the book has nothing of any pod any more. */
  down(pods: readonly BenchPod[]): Promise<number>;
  /** SIGKILL and a new life: milliseconds from the start of the process until all the pods are told again. */
  restart(pods: readonly BenchPod[]): Promise<number>;
  close(): Promise<void>;
}

/** The rule's other half: a subject that says so too early has not been measured but caught. */
export function checkMounted({ root, name }: Subject, pods: readonly BenchPod[]): void {
  const mounted: ReadonlySet<string> = new Set(mountsBelow(root).map(({ target }) => target));
  const missing = pods
    .flatMap((pod) => pod.publications.map((one) => placeOf(root, one)))
    .find(({ path, isMount }) => (isMount ? !mounted.has(path) : !existsSync(path)));
  if (missing !== undefined) throw new Error(`${name} says that ${missing.path} is there, and it is not`);
}

export function checkUnmounted({ root, name }: Subject): void {
  const left = mountsBelow(root).find(({ target }) => target !== root);
  if (left !== undefined) throw new Error(`${name} says that nothing is mounted, and ${left.target} is`);
}

/** Where a volume of a pod of `pods.ts` is seen. The kubelet has a configMap on the disk: its file is looked for. */
function placeOf(root: string, publication: string): { readonly path: string; readonly isMount: boolean } {
  const [uid = '', volume = ''] = publication.split('/');
  const volumes = join(root, 'pods', uid, 'volumes');
  switch (volume) {
    case 'secret':
      return { path: join(volumes, 'kubernetes.io~secret', volume), isMount: true };
    case 'configmap':
      return { path: join(volumes, 'kubernetes.io~configmap', volume, 'a'), isMount: false };
    case 'emptydir':
      return { path: join(volumes, 'kubernetes.io~empty-dir', volume), isMount: true };
    default:
      return { path: join(volumes, 'kubernetes.io~csi', volume, 'mount'), isMount: true };
  }
}

/** The name of a pod of `pods.ts`, which is its uid, too. */
export function podName({ publications }: BenchPod): string {
  return publications[0]?.split('/')[0] ?? '';
}
