/** An agent that starts, looks and plans, and begins nothing: what `mooring plan` shows. */
import { fail, type Failure } from '../../mount/failure.ts';
import { createLog } from '../../mount/process/journal-log.ts';
import { instanceLockHolder } from '../../mount/process/instance-lock.ts';
import type { Log } from '../../mount/process/log.ts';
import { createLayout } from '../../plugins/layout/layout.ts';
import type { Config } from '../config/config.ts';
import { EXIT_CODES } from '../config/exit-code.ts';
import { type PlanDocument, planDocument } from '../plan/plan-document.ts';
import type { PlanOutcome } from '../plan/plan-outcome.ts';
import { isWhole, planReady } from '../plan/plan-ready.ts';
import { readOnlyHost } from '../plan/read-only-host.ts';
import { readOnlyTransport } from '../plan/read-only-transport.ts';
import type { LoadParse } from '../source/cluster/read-kubeconfig-file.ts';
import { observe } from '../status/status-facts.ts';
import { type AgentHost, createAgentHost } from './agent-host.ts';
import { type CheckedLaunch, checkHost, checkKubeletRoot } from './check-host.ts';
import { type ComposedAgent, composeAgent } from './compose-agent.ts';
import { openNothing, withRootAdvised } from './process-facts.ts';
import { besideWhom, lookForKubelet } from './kubelet-beside.ts';

export interface PlanLaunch {
  readonly config: Config;
  readonly brokerCommand: readonly string[];
  readonly mountNamespace: CheckedLaunch['mountNamespace'];
  readonly loadParse: LoadParse;
  /** A kubelet must have worked with this root. */
  readonly takesOver: boolean;
  /** How long drivers and servers are waited for. */
  readonly patienceMs: number;
}

/**
 * Guarantees: nothing on the machine and nothing in the cluster is changed, and no lock is held, so an agent or a
 * kubelet may start meanwhile. `already-running`: an agent has the root, and its status tells more.
 */
export async function runPlan(launch: PlanLaunch): Promise<PlanOutcome> {
  const { config } = launch;
  const { agentLock, own } = createLayout(config.root);
  const holder = await instanceLockHolder(agentLock);
  if (!holder.ok) return refused(withRootAdvised(holder.failure), EXIT_CODES.failure);
  if (holder.value !== undefined) {
    const message = `an agent has the root ${config.root}: mooring status shows what it does`;
    const { failure } = fail({ code: 'already-running', message, effect: 'none', blocker: holder.value });
    return refused(failure, EXIT_CODES.alreadyRunning);
  }
  // Brokers want a descriptor to hold; that of the helpers of an agent is none of theirs.
  const held = openNothing();
  // Nobody asked how full the volumes are, and drivers are asked for nothing.
  const planned = { ...launch, config: { ...config, statisticsIntervalMs: 0 }, log: silentLog() };
  const hosted = await createAgentHost(planned, held.descriptor);
  try {
    const root = await hosted.host.inspect(config.root);
    // Before the first start there is no root: the agent would make it, and all below it is its own.
    const isNew = root.ok && root.value.kind === 'absent';
    const host = readOnlyHost(hosted.host, isNew ? config.root : own);
    return await plan(planned, { ...hosted, host });
  } finally {
    await hosted.closeHost();
    held.close();
  }
}

async function plan(
  launch: PlanLaunch & { readonly log: Log },
  { host, parser }: AgentHost,
): Promise<PlanOutcome> {
  const { config, takesOver, patienceMs } = launch;
  const checked = await checkHost(launch, host);
  if (!checked.ok) return refused(checked.failure, EXIT_CODES.configuration);
  const kubeletRoot = takesOver ? await checkKubeletRoot(host, config.root) : checked;
  if (!kubeletRoot.ok) return refused(kubeletRoot.failure, EXIT_CODES.configuration);
  const surroundings = { host, parser, hasRoot: true, throughTransport: readOnlyTransport, plansOnly: true };
  const composed = await composeAgent(launch, surroundings);
  if (!composed.ok) return refused(composed.failure, EXIT_CODES.configuration);
  const { agent, issued } = composed.value;
  try {
    const started = await agent.start();
    if (!started.ok) return refused(started.failure, EXIT_CODES.failure);
    await planReady(agent, host, patienceMs);
    const refusal = await lookForKubelet(besideWhom(config));
    return { kind: 'planned', document: documentOf(composed.value, launch, { host, refusal }) };
  } finally {
    issued.stop();
    issued.cluster?.stop();
    await agent.stop(0);
  }
}

function documentOf(
  { agent, issued }: ComposedAgent,
  { config }: PlanLaunch,
  { host, refusal }: Pick<AgentHost, 'host'> & { readonly refusal: Failure | undefined },
): PlanDocument {
  const view = agent.view();
  return planDocument({
    facts: observe(view, { nodeName: config.nodeName, clock: host, abandonedCalls: () => 0 }),
    root: config.root,
    whole: isWhole(agent),
    refusal,
    planOf: (volume) => view.reconciler.planOf(volume),
    wordOf: (volume) => issued.cluster?.attachment.wordOf(volume),
  });
}

function refused(failure: Failure, exitCode: number): PlanOutcome {
  return { kind: 'refused', exitCode, failure };
}

/** What is wrong is in the plan. */
function silentLog(): Log {
  return createLog({ format: 'json', level: 'error', priorities: false, write: () => {}, wallMs: () => 0 });
}
