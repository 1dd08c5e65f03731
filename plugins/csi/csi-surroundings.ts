/** What the verbs of CSI volumes are performed with, and what each of them asks first. */
import { assert, type Result } from '../../mount/failure.ts';
import type { Host } from '../../mount/host.ts';
import type { RemoteMethod } from '../../mount/remote-call.ts';
import type { DevicePublication } from '../device/device-publication.ts';
import { FORCE_FIELD, withFlag } from './call/force-field.ts';
import type { Sharing } from './call/volume-call-queue.ts';
import type { DriverPath, Prepared } from './call/volume-directory.ts';
import { notRegistered, type VolumeRpc } from './call/volume-rpc.ts';
import type { CsiPlaces } from './csi-places.ts';
import type { DriverRegistry } from './driver/driver.ts';
import { reachableFrom } from './driver/topology.ts';
import type { StagedMount } from './staged-mount.ts';
import type { Layout } from '../layout/layout.ts';
import type { VolumeCall } from '../plugin.ts';
import type { CsiVolumeSpec, VolumeSpec } from '../volume.ts';

export interface CsiSurroundings {
  readonly host: Host;
  readonly layout: Layout;
  readonly nodeName: string;
  readonly drivers: Pick<DriverRegistry, 'get'>;
  /** One call in flight per volume. */
  readonly inTurn: VolumeRpc;
  readonly places: CsiPlaces;
  readonly stagedMount: StagedMount;
  readonly block: DevicePublication;
  /** May publish and unpublish of one volume at different targets overlap in this driver? */
  readonly parallelPublish: (driver: string) => boolean;
  /** May this driver be sent `force` and `fence`? */
  readonly mayForce: (driver: string) => boolean;
}

export function csiSpec(spec: VolumeSpec): CsiVolumeSpec {
  assert(spec.kind === 'csi', 'the CSI plugin is given CSI volumes');
  return spec;
}

export function sharingOf({ parallelPublish }: CsiSurroundings, spec: CsiVolumeSpec): Sharing {
  return parallelPublish(spec.driver) ? 'shared' : 'alone';
}

/** The method as this call may use it: in quarantine, and for a driver that was opted in, with `force`. */
export function forced<Request, Reply>(
  { mayForce }: CsiSurroundings,
  method: RemoteMethod<Request, Reply>,
  { spec, force }: VolumeCall,
): RemoteMethod<Request, Reply> {
  return force && mayForce(csiSpec(spec).driver) ? withFlag(method, FORCE_FIELD) : method;
}

export function reachableHere({ drivers, nodeName }: CsiSurroundings, spec: CsiVolumeSpec): Result<void> {
  const driver = drivers.get(spec.driver);
  return driver === undefined ? notRegistered(spec.driver) : reachableFrom(spec, driver, nodeName);
}

/** No directory is made for a driver that is not there: nothing would remove it. */
export async function prepareFor(
  csi: CsiSurroundings,
  call: VolumeCall,
  place: DriverPath,
): Promise<Result<Prepared>> {
  const reachable = reachableHere(csi, csiSpec(call.spec));
  return reachable.ok ? place.prepare(call.expectedAll) : reachable;
}
