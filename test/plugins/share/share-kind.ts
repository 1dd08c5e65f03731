/**
 * A kind of volume that exists in tests only: a directory of some server, staged once for the node and shared by its
 * pods. All that a kind has to have is in this file, and one line registers it.
 */
import { done, fail, ok, type Result } from '../../../mount/failure.ts';
import { type AbsolutePath, below, type Host, type MountIdentity, parentOf } from '../../../mount/host.ts';
import type { VolumeKind } from '../../../plugins/kinds/kinds.ts';
import { removeEmptyPodDirectories, removeUnlessInUse } from '../../../plugins/layout/pod-directory.ts';
import { inOrder } from '../../../plugins/steps.ts';
import type { VolumeTraits } from '../../../plugins/traits/volume-traits.ts';
import type { PluginName, VolumeId, VolumeSpec } from '../../../plugins/volume.ts';

declare module '../../../plugins/volume.ts' {
  interface VolumeSpecs {
    'test-share': ShareSpec;
  }
}

export interface ShareSpec {
  readonly kind: 'test-share';
  readonly id: VolumeId;
  readonly name: string;
  readonly server: string;
  /** For the next pod. */
  readonly comment: string;
}

const PLUGIN: PluginName = 'mooring.test/share';
const MODE = 0o750;

export function shareSpec(name: string, server: string, comment = ''): ShareSpec {
  return { kind: 'test-share', id: `${PLUGIN}/${name}` as VolumeId, name, server, comment };
}

const TRAITS: VolumeTraits<ShareSpec> = {
  kind: 'test-share',
  plugin: PLUGIN,
  isShared: true,
  name: ({ name }) => name,
  fields: {
    name: {},
    server: { fixed: () => true, excludes: () => true },
    comment: {},
  },
  stagingPath: ({ name }, layout) => below(layout.plugins, 'mooring.test', 'share', name),
};

export const SHARE: VolumeKind = {
  traits: TRAITS,
  create: ({ host, layout, mounter }) => {
    const staging = (spec: VolumeSpec): AbsolutePath =>
      TRAITS.stagingPath?.(spec as ShareSpec, layout) ?? layout.root;
    return {
      name: PLUGIN,
      needs: () => ({ attach: false, stage: true, expand: false }),
      lane: () => PLUGIN,
      attach: async () => ok({ publishContext: undefined }),
      detach: async () => done,
      async stage({ spec }) {
        const made = await inOrder(
          () => host.makeDirectory(staging(spec), MODE),
          () =>
            host.mount({
              fsType: 'tmpfs',
              source: (spec as ShareSpec).server,
              target: staging(spec),
              options: [],
            }),
        );
        const mount = made.ok ? await mountAt(host, staging(spec)) : made;
        return mount.ok ? ok({ stagedMount: mount.value }) : mount;
      },
      unstage: ({ spec }) =>
        inOrder(
          () => mounter.unmount(staging(spec)),
          () => host.removeEmptyDirectory(staging(spec)),
          () => removeUnlessInUse(host, parentOf(staging(spec))),
          () => removeUnlessInUse(host, parentOf(parentOf(staging(spec)))),
        ),
      async publish({ spec, publication }) {
        const target = layout.target(spec, publication);
        const made = await inOrder(
          () => host.makeDirectory(target, MODE),
          () => host.mount({ fsType: 'bind', source: staging(spec), target, options: [] }),
        );
        const mount = made.ok ? await mountAt(host, target) : made;
        return mount.ok ? ok({ mount: mount.value }) : mount;
      },
      unpublish: ({ spec, publication }) => {
        const target = layout.target(spec, publication);
        return inOrder(
          () => mounter.unmount(target),
          () => host.removeEmptyDirectory(target),
          () => removeUnlessInUse(host, parentOf(target)),
          () => removeEmptyPodDirectories(host, layout, publication.pod.uid),
        );
      },
    };
  },
};

async function mountAt(host: Host, target: AbsolutePath): Promise<Result<MountIdentity>> {
  const found = await host.lookUpMount(target);
  if (!found.ok) return found;
  if (found.value.mounted) return ok({ mountId: found.value.mountId, device: found.value.device });
  return fail({ code: 'mount-failed', message: `nothing is mounted at ${target}`, effect: 'unknown' });
}
