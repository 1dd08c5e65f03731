/** Whether one of the kubelets that run on this machine is in the way of an agent. Pure. */
import { posix } from 'node:path';
import { fail, type Failure } from '../../mount/failure.ts';
import { type AbsolutePath, isBelow, parseAbsolutePath } from '../../mount/host.ts';

export interface KubeletProcess {
  readonly pid: string;
  /** Its command line without the program. */
  readonly options: readonly string[];
  /** It has our mount namespace: its paths are ours. */
  readonly sharesMounts: boolean;
  /** Its root is ours, or above or below it, by whatever links and binds. */
  readonly sharesRoot: boolean;
  /** It has our host name, which is the name of its Node unless it was told another. */
  readonly sharesHostname: boolean;
}

export interface OurPlace {
  readonly root: AbsolutePath;
  /** Undefined: this machine is no node of a cluster. */
  readonly nodeName: string | undefined;
  readonly hostname: string;
}

const KUBELET_ROOT = '/var/lib/kubelet' as AbsolutePath;

export function kubeletInTheWay(
  processes: readonly KubeletProcess[],
  { root, nodeName, hostname }: OurPlace,
): Failure | undefined {
  for (const { pid, options, sharesMounts, sharesRoot, sharesHostname } of processes) {
    const theirs = kubeletRoot(options);
    const isSame =
      sharesRoot ||
      (theirs !== undefined && (theirs === root || isBelow(root, theirs) || isBelow(theirs, root)));
    if (sharesMounts && isSame) return inTheWay(pid, `a kubelet runs with the root ${theirs}`);
    const name = optionOf(options, 'hostname-override') ?? (sharesHostname ? hostname : undefined);
    if (nodeName !== undefined && name?.toLowerCase() === nodeName)
      return inTheWay(
        pid,
        `a kubelet runs for Node ${nodeName}, whose list of volumes in use has one writer`,
      );
  }
  return undefined;
}

/** As the kubelet has it (Go, filepath.Clean): `/var/lib/kubelet/` is `/var/lib/kubelet`. A service starts in `/`. */
export function kubeletRoot(options: readonly string[]): AbsolutePath | undefined {
  return parseAbsolutePath(posix.resolve('/', optionOf(options, 'root-dir') ?? KUBELET_ROOT));
}

/**
 * By `/proc/<pid>/status`: root runs it, or who runs this agent, and nobody else has begun it, as anybody may begin a
 * program that is set-uid. Of any other a name proves nothing: it would keep the agent from starting.
 */
export function isTrusted(status: string, ownUid: number): boolean {
  const ids = /^Uid:\s+(.*)$/m.exec(status)?.[1]?.split(/\s+/).map(Number) ?? [];
  return ids.length > 0 && ids.every((id) => id === 0 || id === ownUid);
}

/** `--name value` or `--name=value`, and for the kubelet `_` is `-` in a name; the last one counts. */
function optionOf(options: readonly string[], name: string): string | undefined {
  let value: string | undefined;
  for (const [index, option] of options.entries()) {
    const [given = ''] = option.split('=', 1);
    if (given.replaceAll('_', '-') !== `--${name}`) continue;
    value = given === option ? options[index + 1] : option.slice(given.length + 1);
  }
  return value;
}

function inTheWay(pid: string, message: string): Failure {
  return fail({ code: 'kubelet-running', message, effect: 'none', blocker: `pid ${pid}` }).failure;
}
