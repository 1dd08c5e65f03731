/**
 * What a cluster runs beside a driver, as it comes from its source: csi-provisioner makes and deletes volumes,
 * csi-attacher attaches them, csi-resizer grows them. They speak to the API server as its administrator.
 */
import { inPrivateNamespace } from '../real/namespace.ts';
import { buildPrograms, programFile } from '../interop/go-program.ts';
import type { Program } from '../interop/program.ts';
import type { World } from '../interop/world.ts';
import type { Cluster } from './cluster-world.ts';

/** The flags that each has beside those that all have; what is not here is as its authors have it. */
const FLAGS = {
  'csi-provisioner': ['--default-fstype=ext4', '--extra-create-metadata'],
  'csi-attacher': ['--default-fstype=ext4'],
  'csi-resizer': [],
} as const satisfies Readonly<Record<string, readonly string[]>>;

export type Sidecar = keyof typeof FLAGS;

export const SIDECARS: readonly Sidecar[] = ['csi-provisioner', 'csi-attacher', 'csi-resizer'];

/** Their own limit is five requests in a second, which one burst of a node would wait for and nothing else. */
const LIMITS = ['--kube-api-qps=500', '--kube-api-burst=1000'];

/** As `clusterObstacle`, which comes first. */
export function sidecarObstacle(names: readonly Sidecar[] = SIDECARS): string | false {
  const obstacle = inPrivateNamespace();
  if (obstacle !== false) return obstacle;
  const lacking = buildPrograms(names);
  if (lacking === undefined) return false;
  process.stderr.write(`\n*** SKIPPED: ${lacking} ***\n\n`);
  return `SKIPPED: ${lacking}`;
}

/** argv of one that serves the driver of this socket. */
export function sidecarCommand(name: Sidecar, kubeconfig: string, socket: string): readonly string[] {
  const where = [`--kubeconfig=${kubeconfig}`, `--csi-address=${socket}`];
  return [programFile(name), ...where, ...LIMITS, ...FLAGS[name], '--v=4'];
}

/** They end with the world. */
export function startSidecars(
  world: Pick<World, 'start'>,
  { plane }: Pick<Cluster, 'plane'>,
  socket: string,
  names: readonly Sidecar[] = SIDECARS,
): readonly Program[] {
  return names.map((name) => world.start(name, sidecarCommand(name, plane.adminKubeconfig, socket)));
}
