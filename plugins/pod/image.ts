/** image: what starts the containers pulls and mounts it, so there is nothing to do but to know of it (KEP-4639). */
import { done, fail, ok } from '../../mount/failure.ts';
import type { VolumePlugin } from '../plugin.ts';
import { createPodPlugin } from './pod-plugin.ts';
import { IMAGE_PLUGIN } from './pod-traits.ts';

/** Guarantees: no effect at all, as of the kubelet's plugin of that name. */
export function createImagePlugin(): VolumePlugin {
  return createPodPlugin({
    name: IMAGE_PLUGIN,
    async publish({ spec }) {
      if (spec.kind === 'image') return ok({ mount: undefined });
      return fail({ code: 'spec-invalid', message: `not an image: ${spec.kind}`, effect: 'none' });
    },
    unpublish: async () => done,
  });
}
