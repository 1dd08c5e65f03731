/** What a driver's CSIDriver object means for each of its volumes; the API server's defaults without one. */
import type { Failure } from '../../mount/failure.ts';
import { CSI_DEFAULTS, type CsiVolumeSpec } from '../../plugins/volume.ts';
import type { LifecycleMode, TokenRequest } from '../../kubernetes/objects/objects.ts';
import { refuseUnknown } from './missing.ts';
import { refuse } from '../../kubernetes/fields/refuse.ts';
import type { DesiredObjects } from '../source/desired-objects.ts';

/** The terms of one driver for volumes of one lifecycle mode. */
export interface DriverTerms {
  readonly fields: Pick<
    CsiVolumeSpec,
    'attachRequired' | 'podInfoOnMount' | 'lifecycle' | 'fsGroupPolicy' | 'tokensInSecrets'
  >;
  /** `lifecycle-mode`: it does not do such volumes. `reference-missing`: its terms cannot be read. */
  readonly refused: Failure | undefined;
  readonly seLinuxMount: boolean;
  readonly requiresRepublish: boolean;
  readonly tokenRequests: readonly TokenRequest[];
}

/** Total: a driver without a CSIDriver object has the defaults. */
export function driverTerms(
  desired: Pick<DesiredObjects, 'drivers' | 'rejected' | 'awaited'>,
  driver: string,
  lifecycle: LifecycleMode,
): DriverTerms {
  const object = desired.drivers.get(driver);
  return {
    fields: {
      attachRequired: lifecycle === 'Ephemeral' ? false : object?.attachRequired,
      podInfoOnMount: object?.podInfoOnMount ?? false,
      lifecycle,
      fsGroupPolicy: object?.fsGroupPolicy ?? CSI_DEFAULTS.fsGroupPolicy,
      tokensInSecrets: object?.serviceAccountTokenInSecrets ?? CSI_DEFAULTS.tokensInSecrets,
    },
    refused: unreadable(desired, driver) ?? lifecycleFailure(driver, lifecycle, object?.lifecycleModes),
    seLinuxMount: object?.seLinuxMount ?? false,
    requiresRepublish: object?.requiresRepublish ?? false,
    tokenRequests: object?.tokenRequests ?? [],
  };
}

/** Not known is not "none": the defaults may attach what must not be attached, and keep from a driver what it needs. */
function unreadable(
  desired: Pick<DesiredObjects, 'drivers' | 'rejected' | 'awaited'>,
  driver: string,
): Failure | undefined {
  if (desired.drivers.has(driver)) return undefined;
  return refuseUnknown(desired, `CSIDriver ${driver}`, driver)?.failure;
}

/** A driver has to say that it does inline volumes: one that does not know of them might mount anything (KEP-596). */
function lifecycleFailure(
  driver: string,
  lifecycle: LifecycleMode,
  modes: readonly LifecycleMode[] | undefined,
): Failure | undefined {
  if ((modes ?? ['Persistent']).includes(lifecycle)) return undefined;
  const has = modes === undefined ? 'without a CSIDriver object it has' : 'its CSIDriver object lists';
  const what = lifecycle === 'Ephemeral' ? 'inline volumes of pods' : 'PersistentVolumes';
  const message =
    `driver ${driver} is not said to do ${what}: ${has} the lifecycle mode ` +
    `${(modes ?? ['Persistent']).join(', ')}, and spec.volumeLifecycleModes must list ${lifecycle}`;
  return refuse('lifecycle-mode', message, driver).failure;
}
