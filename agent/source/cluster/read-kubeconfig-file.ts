/** From the path of a kubeconfig to the server and who we are there. */
import { fail, ok, type Result } from '../../../mount/failure.ts';
import { type AbsolutePath, type Host, parentOf } from '../../../mount/host.ts';
import { whyRevealed, whyUntrusted } from '../../../mount/process/file-owner.ts';
import { problemText } from '../../../mount/text/problem-text.ts';
import { type ApiAccess, readKubeconfig } from '../../../kubernetes/api/kubeconfig.ts';
import type { parseManifest } from '../manifests/parse/manifest.ts';

const FILE_BYTES_MAX = 1_024 * 1_024;
const LIMITS = { fileBytesMax: FILE_BYTES_MAX, linesMax: 20_000, depthMax: 16, documentsMax: 1 };

/** Brings the parser of YAML, which an agent without a kubeconfig never has in memory. */
export type LoadParse = () => Promise<typeof parseManifest>;

/**
 * By `spec-invalid`, with the field and what would be right, or as the file's reading has failed; `path-unsafe` when
 * others than root can write it. One that others can read and that holds a key or a token is warned of (SE-38).
 */
export async function readKubeconfigFile(
  host: Pick<Host, 'inspect' | 'readFile'>,
  path: AbsolutePath,
  loadParse: LoadParse,
  warn: (message: string) => void,
): Promise<Result<ApiAccess>> {
  const facts = await host.inspect(path);
  const kind = facts.ok ? facts.value.kind : 'absent';
  if (kind === 'absent' && (facts.ok || facts.failure.code === 'path-missing'))
    return unusable(path, ['it is not there']);
  if (!facts.ok) return unusable(path, [facts.failure.message]);
  if (kind !== 'file') return unusable(path, [`it is a ${kind}; expected a file`]);
  const untrusted = whyUntrusted(facts.value);
  if (untrusted !== undefined) {
    const message = `kubeconfig ${path} is not believed: ${untrusted}`;
    return fail({ code: 'path-unsafe', message, effect: 'none', blocker: path });
  }
  const content = await host.readFile(path, FILE_BYTES_MAX);
  if (!content.ok) return unusable(path, [content.failure.message]);
  const parse = await loadParse();
  const documents = parse(Buffer.from(content.value).toString('utf8'), LIMITS);
  if (!documents.ok) return unusable(path, [documents.failure.message]);
  const [document] = documents.value;
  const problems = document?.problems ?? [];
  const reading =
    problems.length > 0
      ? { ok: false as const, problems }
      : readKubeconfig(document?.value, parentOf(path) ?? ('/' as AbsolutePath));
  if (reading.ok) {
    const revealed = holdsSecret(reading.access) ? whyRevealed(facts.value) : undefined;
    if (revealed !== undefined) warn(`${path}: ${revealed}`);
    return ok(reading.access);
  }
  return unusable(path, reading.problems.map(problemText));
}

function holdsSecret({ identity }: ApiAccess): boolean {
  return (identity.kind === 'token' ? identity.token : identity.key).kind === 'bytes';
}

function unusable(path: AbsolutePath, problems: readonly string[]): ReturnType<typeof fail> {
  const message = `kubeconfig ${path} cannot be used: ${problems.join('; ')}`;
  return fail({ code: 'spec-invalid', message, effect: 'none', blocker: path });
}
