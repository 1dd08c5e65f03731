/**
 * Seeds that once failed, each with what was wrong. A change of the generator makes other stories of them: then
 * look for a seed that tells the same again (plant the bug, run), or give the sentence a test of its own.
 */
import {
  aboutSubpaths,
  aboutAbsentManifests,
  aboutChangedDisks,
  aboutClock,
  aboutCluster,
  aboutDeadAndTaken,
  aboutDeadAndWalked,
  aboutDeadFileSystems,
  aboutFullDisks,
  aboutHiddenNotes,
  aboutHung,
  aboutInlineVolumes,
  aboutLeavingStrangers,
  aboutLostHolds,
  aboutLostNodes,
  aboutLostRecords,
  aboutMovedPods,
  aboutNfs,
  aboutNodeIds,
  aboutPartsOfChangedDisks,
  aboutRestoredBackups,
} from './stories.ts';
import type { Plan } from './swarm.ts';

export interface Regression {
  readonly seed: number;
  readonly sentence: string;
  /** What the seed was made to be about, where it is not what it drew. */
  readonly plan?: (plan: Plan) => Plan;
  /** Manifests are gone in it, as the seed drew; the others are told without, as they were found. */
  readonly isOfAbsence?: true;
  /** All is as the seed draws it today; the others are told as on the day when they were found. */
  readonly isOfToday?: true;
}

export const REGRESSIONS: readonly Regression[] = [
  {
    seed: 98,
    isOfToday: true,
    sentence: 'a stage that comes after the clock was set while no agent ran is unstaged by its driver',
    plan: aboutClock,
  },
  {
    seed: 46,
    sentence: 'a driver that staged nothing and said OK is asked to stage again when it refuses to publish',
  },
  { seed: 31, sentence: 'a publish that was undone leaves no pod directory behind' },
  { seed: 5, sentence: 'a replacement cut short leaves no temporary file with the records' },
  {
    seed: 1434,
    sentence: 'a temporary file left by a cut-short write does not hold up the teardown of its volume',
  },
  { seed: 70, sentence: 'a record that could not be erased is erased later' },
  {
    seed: 836189098,
    sentence:
      'a driver is not asked how full somebody else’s file system is that lies where the volume was to be',
    isOfAbsence: true,
  },
  {
    seed: 836191147,
    sentence:
      'who comes over a stranger only, who goes, hides nothing of ours: a later agent cannot know him',
    isOfAbsence: true,
  },
  {
    seed: 836190074,
    sentence: 'a stranger takes the directories made for his mount away, though others lie over them',
    isOfAbsence: true,
  },
  {
    seed: 914015,
    sentence: 'a volume for one pod is given to none while somebody’s mount hides whether another has it',
    isOfAbsence: true,
  },
  { seed: 64, sentence: 'a target that a driver mounted twice is not taken for lost at every resync' },
  { seed: 616, sentence: 'a volume found on disk is kept while a manifest cannot be read' },
  { seed: 199, sentence: 'a secret volume found on disk is kept while a manifest cannot be read' },
  { seed: 1283, sentence: 'a mount whose directory could not be listed is no orphan' },
  { seed: 981, sentence: 'a wanted volume found on disk is attached when its driver asks for it' },
  {
    seed: 155,
    sentence: 'a disk emptyDir found on disk is neither mounted over nor emptied',
    plan: (plan) => ({ ...plan, deathEveryMs: 0 }),
  },
  { seed: 1651, sentence: 'an aborted publish stays doubtful though the second try was not wanted any more' },
  { seed: 48165, sentence: 'a quarantine that ends while its proof waits for a turn leaves no record' },
  {
    seed: 45340,
    sentence: 'a growth refused as in use holds up no pod once a quarantine has taken the volume down',
  },
  {
    seed: 3221,
    sentence: 'a device whose number is no disk of this machine any more is never held, and no pod has it',
  },
  { seed: 34875, sentence: 'a mount that was taken down while a slow scan went is no orphan' },
  {
    seed: 49474,
    sentence: 'a refusal to grow whose record is lost while no agent runs may be asked for again',
  },
  {
    seed: 25069,
    sentence: 'a device that a call of before the crash publishes is found, though the record is gone',
  },
  {
    seed: 42570,
    sentence: 'a place whose unpublish nobody answered keeps its mark, and nothing is unstaged under it',
  },
  {
    seed: 21688,
    sentence: 'a staged mount that an unstage of before the crash takes away under the look is staged again',
  },
  {
    seed: 2892,
    sentence: 'an operator is not told that a quarantine stands when only its record could not be erased',
  },
  {
    seed: 76,
    sentence: 'an OK over what a driver left of an inline volume that it had ended is not believed',
    plan: aboutInlineVolumes,
  },
  {
    seed: 152,
    sentence: 'what a driver left of an inline volume that it had ended does not stand in its way for ever',
    plan: aboutInlineVolumes,
  },
  {
    seed: 278,
    sentence: 'an inline volume is ended by its driver’s word, though the kernel could not be asked then',
    plan: aboutInlineVolumes,
  },
  {
    seed: 2238,
    sentence: 'that a driver has ended an inline volume is remembered though the agent is asked to stop then',
    plan: aboutInlineVolumes,
  },
  {
    seed: 2550,
    sentence:
      'what a driver bound for a pod’s device is missed when somebody unmounts it, and published again',
  },
  { seed: 32527, sentence: 'an orphan of a block volume that was taken down is not found again' },
  {
    seed: 41785,
    sentence: 'a volume of whose stage only the directory is left is unstaged before it is detached',
  },
  {
    seed: 67810,
    sentence:
      'a publication that is found while it is begun again is not forgotten when nothing comes of that',
  },
  {
    seed: 108440,
    sentence:
      'on a full disk an unstage that hangs was written down: the next agent does not publish from it',
  },
  {
    seed: 700157,
    sentence: 'on a full disk an unstage that is late was written down, though its agent is killed',
  },
  {
    seed: 703918,
    sentence: 'what an unstage of three lives ago left in doubt is not believed because the disk was full',
  },
  {
    seed: 709057,
    sentence: 'on a full disk an unstage that was a lie is in doubt for the next agent, too',
  },
  {
    seed: 80,
    sentence: 'beginning to undo is written down on a full disk, however often its agent is killed',
    plan: aboutFullDisks,
  },
  {
    seed: 990036,
    sentence: 'a late publish of a pod that had gone is given back while another start holds what vanished',
    plan: aboutAbsentManifests,
    isOfAbsence: true,
  },
  {
    seed: 990197,
    sentence:
      'a growth that was refused while a held pod had the volume is asked for again before the next pod',
    plan: aboutAbsentManifests,
    isOfAbsence: true,
  },
  { seed: 537449059, sentence: 'a stage that a late unstage took away is set up again before all is well' },
  { seed: 537449045, sentence: 'a late stage of which a damaged record told is nobody’s to find' },
  {
    seed: 836190322,
    sentence: 'what a file says that is yet to be read is not taken down because another file has gone',
  },
  {
    seed: 836191479,
    sentence: 'a late publish of a pod that is wanted again is given back while another has the volume alone',
    isOfAbsence: true,
  },
  { seed: 812206, sentence: 'what dies while it is walked fails the walk, and is not ready with two groups' },
  {
    seed: 44,
    sentence: 'a pod that has lost its mount of what is dead does not keep it from being set up anew',
    plan: aboutDeadAndTaken,
  },
  {
    seed: 130,
    sentence: 'a pod that is to get its group back keeps its mount when the file system dies',
    plan: aboutDeadAndWalked,
  },
  {
    seed: 836191365,
    sentence: 'what a publish that was given up made just before a power cut is given back after it',
  },
  {
    seed: 836190850,
    sentence: 'an emptyDir of which a record tells waits for the secret of its pod of which none tells',
  },
  {
    seed: 5,
    sentence:
      'a publish of files that was given up is given back beside the device that its volume is by now',
    plan: aboutChangedDisks,
    isOfAbsence: true,
  },
  {
    seed: 60,
    sentence: 'publishes of two pods that were given up are both given back beside the device of a third',
    plan: aboutChangedDisks,
    isOfAbsence: true,
  },
  {
    seed: 37,
    sentence:
      'what came late for a pod that had gone is given back by a second try, too, whoever is held then',
    plan: aboutChangedDisks,
    isOfAbsence: true,
  },
  {
    seed: 21,
    sentence: 'what another pod’s mount keeps dead is not published from after it was staged again',
    plan: aboutDeadAndTaken,
  },
  {
    seed: 72,
    sentence: 'what has become read-only is not taken for made so when it is staged again',
    plan: aboutDeadAndTaken,
  },
  {
    seed: 187,
    sentence: 'what died while a publish waited behind another one is looked at again before it',
    plan: aboutDeadAndWalked,
  },
  {
    seed: 887903110,
    sentence:
      'a device whose node a late unpublish deleted is still bound, and is not published again and again',
  },
  {
    seed: 887903941,
    sentence: 'a publish does not wait for our own look at another pod’s mount, but for the driver’s answers',
  },
  {
    seed: 887907056,
    sentence: 'nor do two of them, one behind the other',
  },
  {
    seed: 841773187,
    sentence:
      'a record that cannot be read is something at stake: another manifest directory is not believed',
  },
  {
    seed: 960838798,
    sentence:
      'a node that an earlier boot left at a target, and that nobody holds, is not taken for the disk',
  },
  {
    seed: 960841736,
    sentence: 'the number of a mount that is gone is another one’s: in doubt the device tells, too',
    isOfAbsence: true,
  },
  {
    seed: 104,
    sentence:
      'with all records lost what is on disk keeps another directory of manifests from being believed',
    plan: aboutLostRecords,
    isOfAbsence: true,
  },
  {
    seed: 960854292,
    sentence: 'a republish that hangs while all is healed is waited for before calm is judged',
  },
  {
    seed: 721,
    sentence: 'the next pod of a block volume does not wait while the directories of the last one go',
  },
  {
    seed: 1018,
    sentence: 'what somebody mounted over the directory of binds is seen before one is made below it',
    isOfAbsence: true,
  },
  {
    seed: 343,
    sentence: 'of binds of a pod that nobody knows no empty directory is left',
    isOfAbsence: true,
  },
  {
    seed: 836190850,
    sentence: 'a volume that was found on disk takes down no bind of another one of its name',
    isOfAbsence: true,
  },
  {
    seed: 1283,
    sentence: 'DL-04: a mount that nobody explains keeps no bind of the volume that goes',
    isOfAbsence: true,
  },
  {
    seed: 2157,
    sentence: 'DL-15: a part is not made on the disk of the node when its volume is not mounted any more',
    isOfAbsence: true,
  },
  {
    seed: 1,
    sentence: 'of a volume that still stands as a device no part is bound',
    plan: aboutChangedDisks,
    isOfAbsence: true,
  },
  {
    seed: 71,
    sentence: 'where no part is wanted any more no directory of binds is left',
    plan: aboutChangedDisks,
    isOfAbsence: true,
  },
  {
    seed: 111,
    sentence: 'a publish that failed before it bound the parts anew is repeated',
    plan: aboutChangedDisks,
    isOfAbsence: true,
  },
  {
    seed: 128,
    sentence: 'a mount and the bind of a part of it, which nobody explains, do not wait for each other',
    plan: aboutLostRecords,
    isOfAbsence: true,
  },
  {
    seed: 133,
    sentence: 'that a volume could not be grown is no reason any more once it is set up anew',
    plan: aboutDeadFileSystems,
    isOfAbsence: true,
  },
  {
    seed: 5_152,
    sentence: 'killed between new files and their binds, the next life binds the new ones',
    plan: aboutDeadAndWalked,
    isOfAbsence: true,
  },
  {
    seed: 5_055,
    sentence: 'a volume whose mount somebody took away is not grown where it was',
    plan: aboutDeadAndTaken,
    isOfAbsence: true,
  },
  {
    seed: 524_712_808,
    sentence:
      'a marker names no volume while the volumes of its pod cannot be listed: what is there is another kind',
    isOfAbsence: true,
  },
  {
    seed: 66,
    sentence: 'a bind of a part is nobody’s only when the papers of the volume that it may be of were read',
    plan: aboutSubpaths,
    isOfAbsence: true,
  },
  {
    seed: 61_800_708,
    sentence:
      'one error of the disk in the registry is no driver that went: it is not asked again what it owes',
  },
  {
    seed: 282_311_488,
    sentence: 'an attachment made anew that the agent cannot read yet was not there all the time',
  },
  {
    seed: 913_380_057,
    sentence: 'a stage that may be there is repeated only where the volume is attached, whoever may have it',
  },
  {
    seed: 913_388_485,
    sentence:
      'a place that could not be set up is not the last one to go: a growth refused as in use stays refused',
  },
  {
    seed: 913_388_150,
    sentence:
      'an attachment that was taken back and given again is seen soon, though the node may not watch it',
  },
  {
    seed: 913_394_426,
    sentence: 'a pod that lost the bind of one sub-path keeps its volume, though the file system is dead',
  },
  {
    seed: 913_395_944,
    sentence:
      'a volume whose attachment could not be read is tried again, though another read was answered just then',
  },
  {
    seed: 5_426,
    sentence:
      'what could not be grown is set up anew all the same, once it was down because its file system died',
  },
  {
    seed: 5_719,
    sentence: 'a volume is told as quarantined no longer than it is, though its record takes its time',
  },
  {
    seed: 6_700,
    sentence:
      'only the last refusal to grow is recorded: one that was heard and not written may be asked again',
  },
  {
    seed: 237_729_091,
    sentence:
      'a publish that began before its attachment was made anew, in the same event, did not begin in quarantine',
  },
  {
    seed: 237_732_411,
    sentence: 'who grows a claim writes nothing to another claim of its name, made anew meanwhile',
  },
  {
    seed: 494_383_068,
    isOfAbsence: true,
    sentence: 'a disk of a pod, published while the CSIDriver object was away, has the group of no pod',
  },
  {
    seed: 494_391_041,
    sentence: 'what a stage that failed has left goes with the last pod, though its driver stages no more',
  },
  {
    seed: 494_404_700,
    isOfAbsence: true,
    sentence: 'on a full disk nothing is set up by a directory that the next life would not know',
  },
  {
    seed: 494_410_740,
    isOfAbsence: true,
    sentence: 'nothing is set up by a directory whose note had no answer: another one was taken for it',
  },
  {
    seed: 494_421_835,
    sentence:
      'no numbers are asked of a place that is on its way down, though its mount was seen a moment ago',
  },
  {
    seed: 494_410_944,
    sentence: 'no record is lost while the device of a stage that was given up is all that tells of it',
  },
  {
    seed: 494_419_869,
    sentence:
      'a pod that was told of a dead file system keeps it, though a call about its place ended in doubt',
  },
  {
    seed: 1_670,
    sentence: 'an attachment that was seen on its way off is asked for until another one is there',
  },
  {
    seed: 8_660,
    sentence:
      'a volume that was refused before anybody had looked at it is told when the list is acknowledged',
  },
  {
    seed: 29_855_033,
    sentence: 'a pod whose manifest vanished with most others gets nothing new while it is kept',
  },
  {
    seed: 4_376,
    sentence: 'an mkfs that is cut short after the storm leaves what a person wipes',
  },
  {
    seed: 7_157,
    sentence: 'a Node that was made anew is told what is in use when the disk was read, lost records or not',
  },
  {
    seed: 1_418,
    sentence:
      'an administrator who logs in where a login of the agent is in doubt is not told from the agent',
  },
  {
    seed: 351_033_300,
    sentence: 'a pod that an outdated copy of the manifests had goes as soon as it is gone from that copy',
  },
  {
    seed: 351_042_881,
    sentence:
      'what was begun while an operator had the volume in quarantine may end after his word that it is not',
  },
  { seed: 74, sentence: 'a session that somebody made anew after ending ours is not ended by the agent' },
  {
    seed: 734011901,
    sentence: 'what is bared by a stranger who goes between the look and the call is not published over',
    isOfAbsence: true,
  },
  {
    seed: 734056956,
    sentence: 'a stranger over a memory emptyDir that is known by an outdated proof is not unmounted',
    isOfAbsence: true,
  },
  {
    seed: 734010291,
    sentence: 'a Node made anew is told nothing while the directory of the pods cannot be read',
    isOfAbsence: true,
  },
  {
    seed: 734076307,
    sentence: 'a Node made anew is told nothing while a directory of a pod cannot be read',
    isOfAbsence: true,
  },
  {
    seed: 1046651316,
    sentence:
      'a disk of iSCSI that a pod has by one way is not mounted by another one when its stage is lost',
  },
  {
    seed: 61102585,
    sentence: 'an append behind one that was cut short in the blank end of its page is read',
  },
  {
    seed: 61101094,
    sentence: 'a note of the manifest directory that a stranger covers is not taken for missing',
    isOfAbsence: true,
  },
  {
    seed: 639463128,
    sentence: 'what a publish has just bound itself may be taken back when its device cannot be held',
  },
  {
    seed: 639465015,
    sentence: 'a mount with the number of one that a pod was told of, and that has gone, is another one',
    isOfAbsence: true,
  },
  {
    seed: 136160435,
    sentence: 'who was told is in the record though a longer operation of the volume runs beside',
    isOfAbsence: true,
  },
  {
    seed: 136151892,
    sentence: 'what nobody explains in the place of a pod that waits for its turn stays in its record',
  },
  {
    seed: 136194754,
    sentence: 'a pod that was told a moment before a kill counts as told while its mount is there',
  },
  {
    seed: 406214358,
    sentence:
      'a volume that is unmounted during the first look of its walk is walked when it is mounted again',
  },
  {
    seed: 680266618,
    sentence: 'a republish that finds the mount gone and gets a dead one, with its number, takes that down',
  },
  {
    seed: 759076691,
    sentence:
      'a place of which only the bind of a part was found is told by its papers when they can be read',
  },
  {
    seed: 411015031,
    sentence: 'a mount that was given the number of the one that a pod had is not that one, wherever it is',
  },
  {
    seed: 411038990,
    sentence: 'a driver has no defaults while the file that may have its object waits to be read',
  },
  {
    seed: 411040534,
    sentence: 'nobody mounts over a place between a look at it and the answer',
  },
  {
    seed: 136140094,
    sentence: 'an attachment that is replaced while the watch of the Node is lost is noticed',
  },
  {
    seed: 772529600,
    sentence:
      'a pod keeps the dead volume that its driver mounted once more over the mount that the record tells of',
  },
  {
    seed: 911391372,
    sentence: 'a pod keeps the dead volume that its driver mounts once more when it is published again',
  },
  {
    seed: 911387683,
    sentence: 'a file that is bound where a device should be goes when it has no name any more, too',
  },
  {
    seed: 16497,
    sentence: 'what an attachment said before anything of its volume stood here is no loss of that',
    plan: aboutCluster,
  },
  {
    seed: 192109633,
    sentence:
      'a device that went with a late unpublish is replaced under its pod, and known when that has ended',
  },
  {
    seed: 2439,
    sentence:
      'of two stages of one volume that were given up, with it set up otherwise between, both are waited for',
  },
  {
    seed: 588155240,
    sentence:
      'a part that comes to light when a stranger leaves while the table is read is not taken for what was in the way',
  },
  {
    seed: 71000331,
    sentence: 'nor when whoever lies over just that part leaves during a slow look, with the record lost',
    plan: aboutLeavingStrangers,
  },
  {
    seed: 75078867,
    sentence:
      'a part that its pod wanted no more when that was replaced may go before anybody has heard of it',
    plan: aboutPartsOfChangedDisks,
  },
  {
    seed: 278545022,
    sentence:
      'of two pods one is told OK and the other that the volume is busy: what OK was said of is looked at',
    plan: aboutHung,
  },
  {
    seed: 1696631456,
    sentence:
      'a detach that nobody could be asked about is under way for longer than its volume stands nowhere',
    plan: aboutLostNodes,
  },
  {
    seed: 635953684,
    sentence:
      'the directory that a late stage made in vain stays for as long as its volume stands as a block volume',
    plan: aboutChangedDisks,
  },
  {
    seed: 588135964,
    sentence:
      'a volume that was grown for a pod that is gone is told to have grown when only readers are left',
  },
  {
    seed: 588180907,
    sentence: 'a file system in memory that lies where the manifests were is theirs after the next power cut',
  },
  {
    seed: 153,
    sentence: 'what a stranger covers says nothing of the directory that manifests are read from',
    plan: aboutHiddenNotes,
    isOfAbsence: true,
  },
  {
    seed: 7,
    sentence: 'a backup that was restored is noticed, though every watch is taken and silent',
    plan: aboutRestoredBackups,
  },
  {
    seed: 959,
    sentence: 'a pod that an older answer shows when it comes was seen, though it is gone by then',
    plan: aboutCluster,
  },
  {
    seed: 1102667200,
    sentence: 'the removal of an emptyDir that had begun is ended when its pod is wanted again',
  },
  {
    seed: 1102665462,
    sentence: 'what a write of papers left that was cut short goes with the volume, at the latest',
  },
  {
    seed: 1102660248,
    sentence:
      'a pod that only reads may have what turned read-only, where nobody sees the stage and the driver has none',
  },
  {
    seed: 109425225,
    sentence:
      'a device that is attached anew has its whole size, whatever came late stands of the one before',
  },
  {
    seed: 109482679,
    sentence:
      'what a driver that stages nothing any more does not take off its stage is detached when the kernel shows none',
  },
  {
    seed: 109486603,
    sentence: 'a place of another boot that is wanted otherwise goes first, whatever kind of volume it is of',
  },
  {
    seed: 1382269414,
    isOfToday: true,
    sentence:
      'a volume is proven clean beside another one whose device had its number, has gone, and is held below the next',
  },
  {
    seed: 222428499,
    isOfToday: true,
    sentence:
      'a place of which a damaged record does not tell any more that its pod has it may go, when nothing is there',
  },
  {
    seed: 222461044,
    isOfToday: true,
    sentence:
      'a dead file system is given back where a lost call has mounted it, though its pod is to have it there',
  },
  {
    seed: 1032,
    isOfToday: true,
    sentence:
      'a stage that comes late goes back while its volume waits for a controller service to detach it',
    plan: aboutNodeIds,
  },
  {
    seed: 73836928,
    isOfToday: true,
    sentence:
      'what a cluster has attached under one name of the node is set up, though its driver has another one by now',
    plan: aboutCluster,
  },
  {
    seed: 225362451,
    isOfToday: true,
    sentence:
      'who is kept because nobody knows him is kept no more when a list shows that he is over, whatever else of the ' +
      'cluster cannot be read',
  },
  {
    seed: 510848259,
    isOfToday: true,
    sentence:
      'what is mounted though its record is of another boot may be what a pod was told of, and is not taken from it',
  },
  {
    seed: 510822307,
    isOfToday: true,
    sentence:
      'an unstage that got lost, of what was unstaged before, leaves nothing that would have to be set up under the ' +
      'node id of then',
  },
  {
    seed: 86,
    isOfToday: true,
    sentence: 'what died before its pod had all of its volumes goes before the pod is ready',
    plan: aboutDeadFileSystems,
  },
  {
    seed: 31702731,
    isOfToday: true,
    sentence: 'a pod that was over and comes again has never had its volumes: what died meanwhile goes',
  },
  {
    seed: 31718647,
    isOfToday: true,
    sentence: 'a pod that nobody wants for a while has not had all of its volumes by that: what dies goes',
  },
  {
    seed: 31717519,
    isOfToday: true,
    sentence: 'a record that is older than the last one may say of other pods that the volume was in use',
  },
  {
    seed: 521305815,
    isOfToday: true,
    sentence: 'a number that another disk was given before it was held is not given to the pod',
  },
  {
    seed: 742935823,
    isOfToday: true,
    sentence: 'a pod that came while the state root could not be read may have run, and keeps what has died',
  },
  {
    seed: 594103661,
    isOfToday: true,
    sentence: 'what died and is being taken from a pod goes, though its driver hangs for minutes over that',
  },
  {
    seed: 854864243,
    isOfToday: true,
    sentence: 'a device that its driver says to have taken back, and has not, is taken back once more',
  },
  {
    seed: 253448869,
    isOfToday: true,
    sentence: 'a pod that came while the mount table could not be read may have run, and keeps what has died',
  },
  {
    seed: 253453489,
    isOfToday: true,
    sentence: 'what is published again at once under another node id was never told of, and may go',
  },
  {
    seed: 19200,
    isOfToday: true,
    sentence: 'a dead volume that its driver forgot is taken down while it is mounted',
    plan: aboutCluster,
  },
  {
    seed: 1184371092,
    isOfToday: true,
    sentence: 'what is mounted where nothing was left is not what the pod was told of, whatever its number',
  },
  {
    seed: 729648844,
    isOfToday: true,
    sentence: 'a directory that comes in the place of one whose pods were just read is another one',
  },
  {
    seed: 7104608,
    isOfToday: true,
    sentence: 'a device that its pod does not have any more is given back before it is published again',
    plan: (plan) => aboutNfs(aboutLostHolds(plan)),
  },
  {
    seed: 1414317634,
    isOfToday: true,
    sentence:
      'what may have been begun under an attachment goes on under that, though nothing of it was set up',
  },
  {
    seed: 1414310117,
    isOfToday: true,
    sentence:
      'what came late behind a damaged record, in the place of a pod that waits for its turn, goes when it has it',
  },
  {
    seed: 1414350496,
    isOfToday: true,
    sentence: 'what came late in the moment in which its pod went holds back no emptyDir of it',
  },
  {
    seed: 1414354040,
    isOfToday: true,
    sentence: 'a teardown that began in a quarantine is ended though an operator ends that meanwhile',
  },
  {
    seed: 5177,
    isOfToday: true,
    sentence: 'a pod that moves to a manifest that cannot be read stays wanted until it can be read',
    plan: aboutMovedPods,
  },
  {
    seed: 5802,
    isOfToday: true,
    sentence: 'a pod that moves to a manifest of which older content is being read stays wanted',
    plan: aboutMovedPods,
  },
  {
    seed: 1978410232,
    isOfToday: true,
    sentence: 'a pod does not become ready with what died before, because of a doubt that is older (DR-11)',
  },
  {
    seed: 1978406958,
    isOfToday: true,
    sentence: 'what a life of its driver set up that attaches nothing is attached when it is published again',
  },
  {
    seed: 2294,
    isOfToday: true,
    sentence: 'what its driver has staged in its books alone is unstaged before it is staged again (D-52)',
  },
  {
    seed: 949957889,
    isOfToday: true,
    sentence:
      'what a dead life has asked for is set up under the node id that its driver had by then (DR-17)',
  },
  {
    seed: 949961940,
    isOfToday: true,
    sentence: 'an attachment taken for lost while it was away stays so until it can be read (FN-01)',
  },
  {
    seed: 743563485,
    isOfToday: true,
    sentence:
      'a pod that only reads may have what turned read-only, where somebody has mounted over the stage (DR-11)',
  },
  {
    seed: 743608531,
    isOfToday: true,
    sentence: 'a growth that was refused for good is remembered though the records were covered for a time',
  },
  {
    seed: 872890538,
    isOfToday: true,
    sentence: 'the node of a disk that is gone goes with it, whatever a driver has mounted on it',
  },
  {
    seed: 872904961,
    isOfToday: true,
    sentence:
      'what a driver left of an inline volume, by an answer that got lost and two lies, no one can tell (D-51)',
  },
  {
    seed: 1531870829,
    isOfToday: true,
    sentence:
      'a pod that came and went after the list that an agent is told of was seen by its watch (RS-02)',
  },
];
