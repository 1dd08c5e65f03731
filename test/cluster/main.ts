/**
 * `npm run cluster -- up|down|kubeconfig`: a real control plane on the loopback, to try Mooring as a node of a cluster.
 * It keeps running after `up`; `down` ends its processes, by their ids, and removes all it has written.
 */
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import {
  controlPlaneIn,
  prepareControlPlane,
  removeControlPlane,
  startControlPlane,
} from './control-plane.ts';

const USAGE = `usage: npm run cluster -- up [node name] | down | kubeconfig [admin|node]

  up          build it if that was never done (8 to 15 minutes, needs Go), start it, with one node; default: node-1
  down        end it and remove what it has written
  kubeconfig  where the kubeconfig of the administrator or of the node is; default: node
`;
const NODE_NAME = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/;
const directory = join(tmpdir(), `mooring-cluster-${userInfo().uid}`);

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

function refuse(text: string, code = 1): number {
  process.stderr.write(`${text}\n`);
  return code;
}

async function up(nodeName: string): Promise<number> {
  if (!NODE_NAME.test(nodeName))
    return refuse(`node name ${JSON.stringify(nodeName)}: expected a DNS name such as node-1`, 2);
  const running = controlPlaneIn(directory);
  if (running !== undefined)
    return refuse(`A control plane runs already, at ${running.server}: "npm run cluster -- down" ends it.`);
  say('Building etcd and Kubernetes, where that is not done yet (8 to 15 minutes the first time) ...');
  const lacking = prepareControlPlane();
  if (lacking !== undefined) return refuse(lacking);
  await removeControlPlane(directory);
  try {
    const { server, adminKubeconfig, nodeKubeconfig } = await startControlPlane({
      directory,
      nodeName,
      isBound: false,
    });
    say(`The API server is at ${server}, with Node ${nodeName}.`);
    say(`Administrator: ${adminKubeconfig}`);
    say(`Node:          ${nodeKubeconfig}`);
    say(`As root:       node dist/mooring.mjs agent --kubeconfig ${nodeKubeconfig} --node-name ${nodeName}`);
    return 0;
  } catch (error) {
    await removeControlPlane(directory);
    return refuse(error instanceof Error ? error.message : String(error));
  }
}

async function down(): Promise<number> {
  const ended = await removeControlPlane(directory);
  say(ended === 0 ? 'No control plane was running.' : `Ended ${ended} processes and removed ${directory}.`);
  return 0;
}

function kubeconfig(whose: string): number {
  if (whose !== 'admin' && whose !== 'node') return refuse(USAGE, 2);
  const running = controlPlaneIn(directory);
  if (running === undefined)
    return refuse('No control plane is running: "npm run cluster -- up" starts one.');
  say(whose === 'admin' ? running.adminKubeconfig : running.nodeKubeconfig);
  return 0;
}

const [command, argument, ...more] = process.argv.slice(2);
if (more.length > 0) process.exitCode = refuse(USAGE, 2);
else if (command === 'up') process.exitCode = await up(argument ?? 'node-1');
else if (command === 'down' && argument === undefined) process.exitCode = await down();
else if (command === 'kubeconfig') process.exitCode = kubeconfig(argument ?? 'node');
else process.exitCode = refuse(USAGE, 2);
