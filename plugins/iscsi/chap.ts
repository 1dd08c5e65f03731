/** CHAP: from the keys of a Secret, as Kubernetes has them, to settings of open-iscsi. Pure. */
import type { IscsiSettings } from '../../mount/block-devices.ts';
import type { ChapUse } from './iscsi-traits.ts';

const GROUPS = { discovery: 'discovery.sendtargets.auth', session: 'node.session.auth' } as const;
const NEEDED = ['username', 'password'] as const;
/** The target proves itself to us. */
const OPTIONAL = ['username_in', 'password_in'] as const;
const VALUE_BYTES_MAX = 255;
const CONTROL = /\p{Cc}/u;

export interface ChapSettings {
  readonly discovery: IscsiSettings;
  readonly session: IscsiSettings;
}

type Data = Readonly<Record<string, string>>;

/** The key that is missing, or whose value is no line of a record; undefined: all is there. Never tells a value. */
export function chapProblem(use: ChapUse, data: Data): string | undefined {
  for (const group of groupsOf(use)) {
    for (const name of [...NEEDED, ...OPTIONAL]) {
      const key = `${group}.${name}`;
      const value = data[key] ?? '';
      if (value === '' && (NEEDED as readonly string[]).includes(name)) return `the key ${key} is missing`;
      if (CONTROL.test(value) || value.trim() !== value || Buffer.byteLength(value) > VALUE_BYTES_MAX)
        return `the key ${key} is no word of at most ${VALUE_BYTES_MAX} bytes without spaces around it`;
    }
  }
  return undefined;
}

export function chapSettings(use: ChapUse, data: Data): ChapSettings {
  return {
    discovery: use.discovery ? settingsOf(GROUPS.discovery, data) : [],
    session: use.session ? settingsOf(GROUPS.session, data) : [],
  };
}

function groupsOf({ discovery, session }: ChapUse): readonly string[] {
  return [...(discovery ? [GROUPS.discovery] : []), ...(session ? [GROUPS.session] : [])];
}

function settingsOf(group: string, data: Data): IscsiSettings {
  const values = [...NEEDED, ...OPTIONAL].flatMap((name): IscsiSettings => {
    const value = data[`${group}.${name}`] ?? '';
    return value === '' ? [] : [[`${group}.${name}`, value]];
  });
  return [[`${group}.authmethod`, 'CHAP'], ...values];
}
