/**
 * `npm run demo`: the main job of Mooring on this machine, end to end, with the programs that are shipped. A pod gets
 * its volumes, the agent is killed and comes back, the pod goes, and nothing is left.
 */
import { runInPrivateNamespace } from './private-namespace.ts';
import { prepareBundles } from './bundles.ts';
import { tellStory } from './story.ts';

process.exitCode = await runInPrivateNamespace({
  name: 'demo',
  purpose: 'demo',
  prepare: prepareBundles,
  tell: tellStory,
});
