"""A job's result out of its trials'."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from harbor.job_plan import JobPlan
from harbor.metrics.mean import Mean
from harbor.models.job.result import JobResult, JobStats
from harbor.models.trial.result import TrialResult
from harbor.utils.pass_at_k import compute_pass_at_k_by_evals


def job_result(
    results: Sequence[TrialResult],
    *,
    job_id: UUID,
    n_total: int,
    started_at: datetime,
    is_finished: bool,
) -> JobResult:
    """The result of a job so far. Its means and pass rates are over the trials with a reward.

    ``started_at`` is local time without a zone, as Harbor writes it.
    """
    stats = JobStats.from_trial_results(list(results), n_total_trials=n_total)
    scored = []
    rewards: defaultdict[str, list[dict[str, float | int] | None]] = defaultdict(list)
    for one in results:
        if one.verifier_result is not None and one.verifier_result.rewards:
            scored.append(one)
            rewards[JobPlan.evals_key_for_result(one)[0]].append(one.verifier_result.rewards)
    for key, own in rewards.items():
        stats.evals[key].metrics = [Mean().compute(own)]
    for key, by_k in compute_pass_at_k_by_evals(scored).items():
        stats.evals[key].pass_at_k = by_k
    now = datetime.now()
    return JobResult(
        id=job_id,
        started_at=started_at,
        updated_at=now,
        finished_at=now if is_finished else None,
        n_total_trials=n_total,
        stats=stats,
    )
