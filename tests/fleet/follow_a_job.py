"""Follows a job from its submission to its end with a client that was generated from the head's OpenAPI document.

Arguments: the folder of the client, the head's address, a token.
"""

import sys
import time

folder, address, token = sys.argv[1:]
sys.path.insert(0, folder)

from head_client import AuthenticatedClient  # noqa: E402
from head_client.api.jobs import change_jobs, explain_job, list_jobs, show_job, submit_jobs  # noqa: E402
from head_client.models import (  # noqa: E402
    ChangeShape,
    ChangeWord,
    ErrorBody,
    JobSpec,
    SelectionShape,
    Submission,
)

client = AuthenticatedClient(base_url=address, token=token, timeout=60)
jobs = [
    JobSpec(name="first", gpus=2, time_s=60.0, emulate=True),
    JobSpec(name="second", gpus=2, time_s=36000.0, emulate=True),
]
first, second = submit_jobs.sync(client=client, body=Submission(jobs=jobs, key=1)).ids


def until(job, state):
    end = time.monotonic() + 120
    while (page := show_job.sync(job, client=client)).state != state:
        assert time.monotonic() < end, page
        time.sleep(0.05)
    return page


page = until(first, "finished")
assert page.name == "first" and page.done >= page.work, page
until(second, "running")
assert "runs" in explain_job.sync(second, client=client).text
selection = SelectionShape(ids=[second])
change = ChangeShape(jobs=selection, change=ChangeWord.CANCEL)
assert change_jobs.sync(client=client, body=change).changed == [second]
until(second, "cancelled")
again = change_jobs.sync_detailed(client=client, body=change)
assert again.status_code == 409 and isinstance(again.parsed, ErrorBody), again
assert again.parsed.error.code == "conflict", again.parsed
listed = list_jobs.sync(client=client, which="ended", sort="id", order="asc")
print(",".join(f"{job.id}:{job.state}" for job in listed.items))
