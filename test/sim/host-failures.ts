/** How the simulated host puts a refused system call: in the words of the real one. */
import { codeOfErrno } from '../../mount/errno.ts';
import type { Effect, Failure, FailureCode } from '../../mount/failure.ts';
import type { Errno } from './file-tree.ts';
import type { Random } from './random.ts';
import type { EffectKind } from './weather.ts';

export function failureOf(errno: Errno, what: string, effect: Effect = 'none'): Failure {
  return { code: codeOfErrno(errno), message: `${what}: ${errno}`, effect };
}

const REFUSALS: Readonly<Partial<Record<EffectKind, FailureCode>>> = {
  mount: 'mount-failed',
  unmount: 'unmount-failed',
  readMountTable: 'table-unreadable',
  writeFile: 'disk-full',
  makeDirectory: 'disk-full',
  holdDevice: 'mount-failed',
  releaseDevice: 'unmount-failed',
};

/** What a refused effect answers. mount(8) and umount(8) promise nothing by failing: the kernel is asked (host.ts). */
export function refusalOf(kind: EffectKind, what: string): Failure {
  const isTool = kind === 'mount' || kind === 'unmount' || kind === 'holdDevice' || kind === 'releaseDevice';
  const effect = isTool ? 'unknown' : 'none';
  return { code: REFUSALS[kind] ?? 'input-output', message: `${what}: refused`, effect };
}

/** The answer of an effect nobody knows the end of. */
export function doubtAbout(what: string, random: Random): Failure {
  return {
    code: random.pick(['deadline-passed', 'broker-lost']),
    message: `${what}: no word`,
    effect: 'unknown',
  };
}
