"""What these tests import of Harbor asks the network for a price list, unless it is told not to."""

import os

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
