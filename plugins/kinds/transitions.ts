/** All transitions, as a broker has them. What they import a broker loads, so it is little. */
import type { AnyTransition } from '../../mount/transition.ts';
import { removePodDirectories } from '../layout/pod-directory.ts';

export const TRANSITIONS: readonly AnyTransition[] = [removePodDirectories];
