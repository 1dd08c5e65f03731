/** The configuration as its file and the flags have it: YAML, or nothing where no file is. */
import type { Result } from '../../mount/failure.ts';
import type { ConfigFlags, ConfigReading } from './config.ts';
import { parseConfig } from './parse-config.ts';

const FILE_BYTES_MAX = 1024 * 1024;
const LINES_MAX = 10_000;
const DEPTH_MAX = 16;

export interface ConfigFile {
  /** As people are told of it. */
  readonly name: string;
  /** Undefined: there is none, and there need not be. */
  readonly text: Result<string | undefined>;
}

/** Problems name the key, or the file where it is no one key's. What reads YAML is loaded only for a file. */
export async function readConfig(
  { name, text }: ConfigFile,
  flags: ConfigFlags,
  hostname: string,
): Promise<ConfigReading> {
  if (!text.ok) return badFile(name, text.failure.message);
  if (text.value === undefined) return parseConfig(undefined, flags, hostname);
  const { parseManifest } = await import('../source/manifests/parse/manifest.ts');
  const bounds = { fileBytesMax: FILE_BYTES_MAX, linesMax: LINES_MAX, depthMax: DEPTH_MAX, documentsMax: 1 };
  const documents = parseManifest(text.value, bounds);
  if (!documents.ok) return badFile(name, documents.failure.message);
  const [document] = documents.value;
  const refused = document?.problems ?? [];
  if (refused.length > 0) {
    const problems = refused.map(({ field, message }) => ({ key: field || name, value: undefined, message }));
    return { ok: false, problems };
  }
  return parseConfig(document?.value, flags, hostname);
}

function badFile(name: string, message: string): ConfigReading {
  return { ok: false, problems: [{ key: name, value: undefined, message }] };
}
