/** Mount options of a PersistentVolume: each one is one option, and none changes what or where is mounted (SE-12). */

const OPTION = /^[A-Za-z0-9][A-Za-z0-9._-]*(?:=[A-Za-z0-9._:/@%+[\]-]*)?$/;
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

/** Why this option is not passed on to a driver; undefined when it is. */
export function mountOptionProblem(option: string): string | undefined {
  if (option.length > OPTION_BYTES_MAX) return `is longer than ${OPTION_BYTES_MAX} bytes`;
  if (!OPTION.test(option)) return 'is not one option of letters, digits and ._-:/@%+[] (no comma, no space)';
  const name = option.split('=', 1)[0] ?? '';
  if (/^x-/i.test(name) || REFUSED.has(name.toLowerCase())) return 'is not an option that a volume may set';
  return undefined;
}
