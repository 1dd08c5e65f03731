/**
 * Mount options of a PersistentVolume. Those of the node's own mounts are one option each, and none changes what or
 * where is mounted (SE-12). A CSI driver gets them as they are, each an entry of a list: it judges what they say.
 */

const OPTION = /^[A-Za-z0-9_][A-Za-z0-9._-]*(?:=[A-Za-z0-9._:/@%+[\]-]*)?$/;
const OPTION_BYTES_MAX = 256;

/** They redirect mount(8) to helpers, other verbs or other users, or undo protections; no volume needs them. */
const REFUSED: ReadonlySet<string> = new Set([
  'helper',
  'uhelper',
  'user',
  'users',
  'nouser',
  'owner',
  'group',
  'loop',
  'offset',
  'sizelimit',
  'encryption',
  'bind',
  'rbind',
  'move',
  'remount',
  'shared',
  'rshared',
  'private',
  'rprivate',
  'slave',
  'rslave',
  'unbindable',
  'runbindable',
  'suid',
  'dev',
  'exec',
]);

/** CSI: all of them together may not have more. */
const DRIVER_OPTION_BYTES_MAX = 4_096;
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f]/;

/** Why this option is not passed on to a CSI driver; undefined when it is. */
export function driverOptionProblem(option: string): string | undefined {
  if (option === '') return 'is empty';
  if (CONTROL_CHARACTER.test(option)) return 'has a control character';
  const isTooLong = Buffer.byteLength(option) > DRIVER_OPTION_BYTES_MAX;
  return isTooLong ? `is longer than ${DRIVER_OPTION_BYTES_MAX} bytes` : undefined;
}

/** Why this option is not passed on to mount(8); undefined when it is. */
export function mountOptionProblem(option: string): string | undefined {
  if (option.length > OPTION_BYTES_MAX) return `is longer than ${OPTION_BYTES_MAX} bytes`;
  if (!OPTION.test(option)) return 'is not one option of letters, digits and ._-:/@%+[] (no comma, no space)';
  const name = optionName(option);
  if (/^x-/i.test(name) || REFUSED.has(name.toLowerCase())) return 'is not an option that a volume may set';
  return undefined;
}

/** What stands behind the name may be a password. */
export function optionName(option: string): string {
  return option.split('=', 1)[0] ?? '';
}
