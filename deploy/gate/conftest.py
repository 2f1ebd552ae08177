pytest_plugins = ["reprod_pytest"]
