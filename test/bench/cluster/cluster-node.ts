/** A node of a cluster that is measured: who mounts there, and when he says that he has. */
/** A pod with claims of bound volumes; volume, claim and handle have one name. */
export interface ClusterPod {
  readonly name: string;
  readonly volumes: readonly string[];
}

/** By name of the pod, on the clock of `nowMs`. */
export type Moments = ReadonlyMap<string, number>;

export interface ClusterNode {
  readonly nodeName: string;
  readonly root: string;
  pid(): number;
  /** When all volumes of each were mounted, by its own book; it is asked before the pods are made. */
  mounted(pods: readonly ClusterPod[], uids: Promise<ReadonlyMap<string, string>>): Promise<Moments>;
  /** When its book had nothing of each any more, staged volumes included; it is asked before the pods end. */
  unmounted(pods: readonly ClusterPod[], uids: ReadonlyMap<string, string>): Promise<Moments>;
  close(): Promise<void>;
}

export interface NodeIdentity {
  readonly nodeName: string;
  readonly kubeconfig: string;
}
