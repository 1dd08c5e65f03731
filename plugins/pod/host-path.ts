/** hostPath: a place of the host itself; it is checked, at most created, and never mounted or removed. */
import { HOST_PATH_PLUGIN } from './pod-traits.ts';
import { done, type Failure, fail, ok, type Result } from '../../mount/failure.ts';
import { type AbsolutePath, below, type Host, type PathKind } from '../../mount/host.ts';
import { paths } from '../../mount/path-steps.ts';
import { type Program, transition } from '../../mount/transition.ts';
import type { VolumePlugin } from '../plugin.ts';
import { refuseDenied } from './denied-path.ts';
import { createPodPlugin } from './pod-plugin.ts';
import { type RealPath, resolveRealPath } from './real-path.ts';
import { doubtful } from '../steps.ts';
import type { HostPathType } from '../volume.ts';

/** The kubelet's modes, for what `DirectoryOrCreate` and `FileOrCreate` create. */
const DIRECTORY_MODE = 0o755;
const FILE_MODE = 0o644;

interface Check {
  readonly kind: PathKind;
  readonly create: ((found: RealPath) => Program<Result<void>>) | undefined;
}

const CHECKS: Readonly<Record<Exclude<HostPathType, ''>, Check>> = {
  Directory: { kind: 'directory', create: undefined },
  DirectoryOrCreate: { kind: 'directory', create: createDirectories },
  File: { kind: 'file', create: undefined },
  FileOrCreate: { kind: 'file', create: createFile },
  Socket: { kind: 'socket', create: undefined },
  CharDevice: { kind: 'character', create: undefined },
  BlockDevice: { kind: 'block', create: undefined },
};

/**
 * Guarantees: the check follows symbolic links as the kubelet's stat does; type '' asks only where the path leads;
 * nothing that exists is changed; unpublish does nothing, because the host owns the place. A path that leads to one of
 * `denied`, below it or above it, is refused, links on either side included (SE-06); a link that is changed later is
 * not seen.
 */
export function createHostPathPlugin(host: Host, denied: readonly AbsolutePath[] = []): VolumePlugin {
  return createPodPlugin({
    name: HOST_PATH_PLUGIN,
    async publish({ spec }) {
      if (spec.kind !== 'host-path') {
        return fail({ code: 'spec-invalid', message: `not a hostPath: ${spec.kind}`, effect: 'none' });
      }
      const { path, type } = spec;
      const isFree = type === '' && denied.length === 0;
      const checked = isFree ? done : await host.perform(checkHostPath, { path, type, denied });
      return checked.ok ? ok({ mount: undefined }) : checked;
    },
    unpublish: async () => done,
  });
}

interface HostPathCheck {
  readonly path: AbsolutePath;
  readonly type: HostPathType;
  readonly denied: readonly AbsolutePath[];
}

export const checkHostPath = transition<HostPathCheck, void>('check-host-path', (args) => check(args));

function* check({ path, type, denied }: HostPathCheck): Program<Result<void>> {
  const found = yield* resolveRealPath(path);
  if (!found.ok) {
    return found.failure.code === 'path-unsafe' ? refuse(path, type, found.failure.message) : found;
  }
  const place = { title: `hostPath ${path.slice(0, 512)}`, path, found: found.value };
  const allowed = yield* refuseDenied(place, denied);
  return allowed.ok && type !== '' ? yield* checkKind(path, type, found.value) : allowed;
}

function* checkKind(
  path: AbsolutePath,
  type: Exclude<HostPathType, ''>,
  found: RealPath,
): Program<Result<void>> {
  const { kind, create } = CHECKS[type];
  if (found.missing.length === 0) {
    return found.kind === kind ? done : refuse(path, type, `it is of kind ${found.kind}`);
  }
  if (create === undefined) return refuse(path, type, 'it does not exist');
  if (found.kind !== 'directory') {
    return refuse(path, type, `it does not exist, and ${found.path} is of kind ${found.kind}`);
  }
  if (found.missing.includes('..')) return refuse(path, type, 'a symbolic link on the way leads nowhere');
  const created = yield* create(found);
  return created.ok ? done : judgeCreation(path, type, created.failure);
}

/** Level by level, because Host makes missing parents 0750 and the kubelet makes them all 0755. */
function* createDirectories({ path, missing }: RealPath): Program<Result<void>> {
  for (const depth of missing.keys()) {
    const made = yield* paths.makeDirectory(below(path, ...missing.slice(0, depth + 1)), DIRECTORY_MODE);
    if (!made.ok) return depth === 0 ? made : doubtful(made);
  }
  return done;
}

function* createFile({ path, missing }: RealPath): Program<Result<void>> {
  if (missing.length > 1) {
    const message = `its parent does not exist below ${path}`;
    return fail({ code: 'path-missing', message, effect: 'none' });
  }
  const options = { mode: FILE_MODE, durable: false, exclusive: true };
  return yield* paths.writeFile(below(path, ...missing), new Uint8Array(), options);
}

/** What could not be created because of what is there is a refusal; everything else keeps its own code. */
function judgeCreation(path: AbsolutePath, type: HostPathType, failure: Failure): Result<never> {
  const fromWhatIsThere = failure.code === 'path-missing' || failure.code === 'path-wrong-kind';
  return fromWhatIsThere && failure.effect === 'none' ? refuse(path, type, failure.message) : fail(failure);
}

function refuse(path: AbsolutePath, type: HostPathType, because: string): Result<never> {
  return fail({
    code: 'host-path-check',
    message: `hostPath ${path.slice(0, 512)} must be of type ${type}: ${because.slice(0, 400)}`,
    effect: 'none',
    blocker: path,
  });
}
