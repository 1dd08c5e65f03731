/** All duties of a driver, in the order they are tried. */
import { ATTACH_DUTY } from './duty/duty-attach.ts';
import { BLOCK_DUTY } from './duty/duty-block.ts';
import { CONCURRENCY_DUTY } from './duty/duty-concurrency.ts';
import { ERROR_DUTIES } from './duty/duty-errors.ts';
import { EXPAND_DUTY } from './duty/duty-expand.ts';
import { IDENTITY_DUTIES } from './duty/duty-identity.ts';
import { LOOK_DUTIES } from './duty/duty-look.ts';
import { PUBLISH_DUTIES, UNPUBLISH_DUTY } from './duty/duty-publish.ts';
import { RESTART_DUTIES } from './duty/duty-restart.ts';
import { STAGE_DUTIES, UNSTAGE_DUTY } from './duty/duty-stage.ts';
import type { Duty } from './duty/duty.ts';
import { FAULT_CLASSES, faultDutyName } from './fault-class.ts';

export const DUTIES: readonly Duty[] = [
  ...IDENTITY_DUTIES,
  ATTACH_DUTY,
  ...STAGE_DUTIES,
  ...PUBLISH_DUTIES,
  ...LOOK_DUTIES,
  EXPAND_DUTY,
  UNPUBLISH_DUTY,
  UNSTAGE_DUTY,
  BLOCK_DUTY,
  ...ERROR_DUTIES,
  CONCURRENCY_DUTY,
  ...RESTART_DUTIES,
];

export const REGISTRATION = 'registration';
export const CLEAN_UP = 'clean-up';

/** What `--only` takes, in the order of the report. */
export const DUTY_NAMES: readonly string[] = [
  REGISTRATION,
  ...DUTIES.map(({ name }) => name),
  ...FAULT_CLASSES.map(faultDutyName),
  CLEAN_UP,
];
