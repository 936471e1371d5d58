//! The defects themselves, each with its name, the original's rule and the one that takes its place.

use super::System;

macro_rules! defects {
    ($($system:ident { $($variant:ident $name:literal: $original:literal => $mended:literal)* })*) => {
        /// One defect of one original.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Defect {
            $($(
                #[doc = $original]
                $variant,
            )*)*
        }

        impl Defect {
            /// All of them, program by program.
            pub const ALL: [Defect; [$($($name),*),*].len()] = [$($(Defect::$variant),*),*];

            /// Its name on the command line.
            pub const fn name(self) -> &'static str {
                match self { $($(Defect::$variant => $name,)*)* }
            }

            /// Whose it is.
            pub const fn system(self) -> System {
                match self { $($(Defect::$variant => System::$system,)*)* }
            }

            /// What the original does, in a sentence.
            pub const fn original(self) -> &'static str {
                match self { $($(Defect::$variant => $original,)*)* }
            }

            /// What is done instead, in a sentence.
            pub const fn mended(self) -> &'static str {
                match self { $($(Defect::$variant => $mended,)*)* }
            }
        }
    };
}

defects! {
    Synergy {
        WholeIterations "whole-iterations":
            "A round is credited in whole iterations; the fraction at its end is lost."
            => "The fraction counts."
        LateEnds "late-ends":
            "A job that is done within a round ends when the round does."
            => "It ends when its work is done; its GPUs are dealt anew at the next round."
        PlacedAnew "placed-anew":
            "All jobs are placed anew in every round, for free."
            => "A job that runs and is chosen again stays on its GPUs."
        TwoSpeeds "two-speeds":
            "A job runs at the speed of its ideal demand or at that of its share; a capped demand lies on a straight line in CPUs, and a memory cap costs nothing."
            => "It runs at the measured speed of what it holds."
        StaleSpeeds "stale-speeds":
            "SRTF, FTF and TETRIS rank by the time left at the speed of a job's last round."
            => "They rank by the time left at the proportional share."
        FtfAscending "ftf-ascending":
            "FTF serves the smallest finish-time ratio first, so that jobs that waited longest go last."
            => "The largest ratio goes first, as in Themis."
        DrfSort "drf-sort":
            "DRF sorts by each job's own dominant demand, whatever tenants have received."
            => "DRF evens out what tenants have received."
        TetrisProduct "tetris-product":
            "TETRIS multiplies time left by demand and looks at nothing that is free."
            => "TETRIS weighs how a demand fits what is free against time left."
        TuneOrder "tune-order":
            "TUNE walks all jobs in policy order; under LAS it walks the jobs whose GPUs fit together, wide gangs first."
            => "TUNE walks the jobs whose GPUs fit together in policy order, those that run already first, under every order."
        OnePass "one-pass":
            "TUNE serves one job after another and never looks back: no job is moved, and what a lowered job leaves over is lost."
            => "A job below its demand is raised, moved or exchanged where that gives it its demand; what is left is dealt out."
        LasSelects "las-selects":
            "Without TUNE, LAS tries only the jobs whose GPUs fit together; no other job is tried in place of one that does not fit."
            => "LAS walks all jobs, as the other orders do."
        LowerWholeShare "lower-whole-share":
            "A job that is lowered or gives back gets exactly its proportional share of everything, so that some gain by it."
            => "It gets the smaller of demand and share, each resource by itself."
        ReclaimUseless "reclaim-useless":
            "Neighbours with nothing of what is needed are asked to give back too, and paid the proportional speed."
            => "Only neighbours with something of what is needed are asked."
        AgePriority "age-priority":
            "After 1,000 hours without running a job goes before all others for good."
            => "Only the trace's priorities count."
        StorageRate "storage-rate":
            "Every GPU of every model asks for 62.5 MB/s of storage; the models' own numbers are lost by a misspelt name."
            => "A job asks for what its profile says."
    }
    ElasticFlow {
        JointAdmission "joint-admission":
            "All arrivals of a slot are judged together: one that does not fit takes the others with it."
            => "Arrivals are judged one by one, in the order of the trace."
        LateJobBlocks "late-job-blocks":
            "While an admitted job is late, no other job with a deadline enters."
            => "Jobs that would be late anyway keep no one out."
        LateJobsFirst "late-jobs-first":
            "A job that cannot be in time any more is planned in its turn, as wide as possible, before those that can."
            => "It is planned after all jobs that can be in time."
        PlansWithoutCosts "plans-without-costs":
            "Plans know nothing of what starting costs."
            => "A plan keeps room for one start where it can, and an arrival enters only with it."
        PlannedEnd "planned-end":
            "A job ends when its planned end fires, at the end of a slot, whatever work is left, and is judged by its plan."
            => "A job ends when its work is done, and is judged by that."
        StaleEnd "stale-end":
            "edf-accessctrl and edf take a stopped job for done when an end fires that it had before."
            => "A stopped job has no end until it runs again."
        OverheadEveryRound "overhead-every-round":
            "Every job pays for starting in every round."
            => "A job pays when it starts and when its number of GPUs changes."
        RestartBySlot "restart-by-slot":
            "All jobs restart after as many rounds as a slot has seconds."
            => "No job restarts without cause."
        StartsFree "starts-free":
            "Under edf and themis starting costs nothing."
            => "Starting costs them what it costs the others."
        GrowthSign "growth-sign":
            "Spare GPUs go to the job whose GPU time grows most."
            => "They go to the job whose GPU time shrinks most, or grows least."
        TrialUncharged "trial-uncharged":
            "Spare GPUs that a job keeps beyond its deadline are reserved only up to it."
            => "They are reserved as long as they are held."
        EdfWidth "edf-width":
            "EDF gives a job up to 64 GPUs, past the number from which on it gains nothing."
            => "EDF gives a job no more than the elastic schedulers would."
        EdfFreeCount "edf-free-count":
            "EDF's plans give GPUs back by overwriting the number free at a slot, whatever others hold there."
            => "Plans give back what they held."
        GandivaSeats "gandiva-seats":
            "Gandiva never counts the seat of an ended job as free, and leaves the last seat of a set unused."
            => "Seats that are free are used."
        GandivaRearrange "gandiva-rearrange":
            "Whether a class that got nodes spreads its jobs over them depends on whether its last try got one."
            => "It does so when it got any."
        GandivaMinuteTurns "gandiva-minute-turns":
            "Gangs take turns only in rounds that fall on a whole minute of the clock."
            => "They take turns in every round."
        GandivaArrivalsOnly "gandiva-arrivals-only":
            "Between arrivals nothing happens under Gandiva: no end is noticed and no gang takes turns."
            => "There is a round in every slot while jobs run."
        GandivaSkipsWaiting "gandiva-skips-waiting":
            "When nodes become free, the job behind each waiting one that is seated is passed over."
            => "Every waiting job is tried."
        TiresiasUnits "tiresias-units":
            "The time at which a job leaves its queue is computed with GPU-seconds taken for seconds."
            => "It is computed in GPU-seconds."
        TiresiasStartCost "tiresias-start-cost":
            "The cost of a start delays an end only if something else happens before it."
            => "It always delays it."
        ThemisClock "themis-clock":
            "Finish-time ratios are computed for the time of the last arrival or end."
            => "They are computed for now."
        ThemisShare "themis-share":
            "The time a job takes alone is its iterations divided by its part of the cluster, no speed in it."
            => "It is the work divided by the speed with that part."
        ThemisReceipts "themis-receipts":
            "Leases that a job received do not count."
            => "A share is weighed against the leases received."
        ThemisWholeLeases "themis-whole-leases":
            "A job ends when its last lease does."
            => "It ends when its work is done."
    }
    Chronus {
        RefusedLinger "refused-linger":
            "The leases of a refused job count against those that arrive with it."
            => "They count for nothing."
        GangRounding "gang-rounding":
            "Gangs of 3 and of 5 to 7 count as 4 and 8 in the model and as themselves elsewhere."
            => "They count as themselves."
        UnearnedCredit "unearned-credit":
            "A job started between slots is credited from the last look at it on, and its start is not counted."
            => "It is credited from its start on, which is counted."
        OddTicks "odd-ticks":
            "Free GPUs are looked for at odd times."
            => "They are looked for at every tick between slots."
        LongestFirst "longest-first":
            "Between slots free GPUs go to the least urgent and of these to the longest."
            => "They go to the same jobs as in a slot."
        ClearsOneLease "clears-one-lease":
            "A job that got ahead of its plan by several leases gives up one of them, and the program aborts."
            => "It gives up as many as it does not need."
        NightLeases "night-leases":
            "Nodes are off for eight leases, however long."
            => "They are off until morning."
    }
}
