/** Settings that are each right by themselves and cannot be right together. */
import type { ConfigProblem } from './config.ts';
import { shown } from './shown-value.ts';
import { type AbsolutePath, isBelow } from '../../mount/host.ts';
import { takenBelow } from '../../plugins/layout/layout.ts';

/** What of the file can contradict itself; the names are those of the file. */
interface Settings {
  readonly root: AbsolutePath;
  readonly socket: AbsolutePath;
  readonly manifests: AbsolutePath;
  readonly token_signing_key: string;
  readonly kubeconfig: string;
  readonly back_off: { readonly first_ms: number; readonly max_ms: number };
  readonly static_drivers: readonly { readonly socket: AbsolutePath }[];
}

/** What no single value shows. */
export function contradictions(file: Settings): readonly ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  if (file.root === '/')
    problems.push({ key: 'root', value: '"/"', message: 'must be a directory of its own' });
  if (file.back_off.first_ms > file.back_off.max_ms) {
    const message = `must not be above back_off.max_ms (${file.back_off.max_ms})`;
    problems.push({ key: 'back_off.first_ms', value: shown(file.back_off.first_ms), message });
  }
  if (file.kubeconfig !== 'off' && file.token_signing_key !== 'off') {
    const message = 'must be off in a cluster, whose API server issues the tokens (kubeconfig)';
    problems.push({ key: 'token_signing_key', value: shown(file.token_signing_key), message });
  }
  for (const key of ['socket', 'manifests'] as const) {
    for (const taken of takenBelow(file.root)) {
      if (file[key] !== taken && !isBelow(file[key], taken)) continue;
      problems.push({
        key,
        value: shown(file[key]),
        message: `must not be in ${taken}, which the agent manages`,
      });
    }
  }
  file.static_drivers.forEach(({ socket }, index) => {
    if (file.static_drivers.findIndex((other) => other.socket === socket) === index) return;
    problems.push({
      key: `static_drivers[${index}].socket`,
      value: shown(socket),
      message: 'must be listed once',
    });
  });
  return problems;
}
