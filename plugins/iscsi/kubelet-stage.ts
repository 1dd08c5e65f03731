/** Where a disk was staged, possibly by a kubelet: it has put a paper there before it mounted over that. */
import { type AbsolutePath, below } from '../../mount/host.ts';
import { paths } from '../../mount/path-steps.ts';
import { type Program, transition, type TransitionArgs } from '../../mount/transition.ts';
import { oneByOne } from '../steps.ts';

/** `path` is where the disk of the target `iqn` was staged. */
interface StagePlace extends TransitionArgs {
  readonly iqn: string;
}

/** The portals, for its log-out. The kubelet deletes it with the directory. */
const PAPER = 'iscsi.json';
const PAPER_BYTES_MAX = 65_536;

/** rmdir, behind the unmount, with the kubelet's paper and nothing else. */
export const removeIscsiStage = transition<StagePlace, void>('remove-iscsi-stage', function* ({ path, iqn }) {
  const seen = yield* paths.mountIdOf(path);
  if (!seen.ok) return seen;
  const paper = below(path, PAPER);
  // What somebody has mounted there by now is his, with all files in it.
  const isLeft = seen.value === undefined && (yield* isPaperOf(paper, iqn));
  return yield* oneByOne(...(isLeft ? [() => paths.removeFile(paper)] : []), () =>
    paths.removeEmptyDirectory(path),
  );
});

/** What cannot be read stays, and the directory with it, which tells. */
function* isPaperOf(paper: AbsolutePath, iqn: string): Program<boolean> {
  const content = yield* paths.readFile(paper, PAPER_BYTES_MAX);
  if (!content.ok) return false;
  try {
    const said = JSON.parse(Buffer.from(content.value).toString()) as { readonly Iqn?: unknown } | null;
    return said?.Iqn === iqn;
  } catch {
    return false;
  }
}
